"""Calls that are put off give what they would have given at once, and fail as they would have failed."""

from __future__ import annotations

import threading

import pytest
from pyspark.errors import PySparkException

from spark_trickle import Trickle
from spark_trickle.catalyst.later import Later, calls_put_off, later, texts
from spark_trickle.catalyst.plan import Plan, Planner, column_ids, items, kind_of, output


def _numbers(planner: Planner, rows: int) -> Plan:
    return planner.analyzed(planner.spark.sql(f"SELECT id, id * 2 AS twice FROM range({rows})"))


def test_a_plan_is_put_together_by_one_call(trickle: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 5)
    columns = output(plan)
    client, sent = trickle.spark.sparkContext._gateway._gateway_client, list[str]()
    right = client.send_command

    def noted(command: str, *arguments, **named):
        if threading.current_thread() is threading.main_thread():
            sent.append(command)
        return right(command, *arguments, **named)

    def doubled() -> Plan:
        few = planner.filter(planner.less(columns[0], planner.literal(3)), plan)
        named = [planner.alias(planner.plus(c, c), f"c{i}") for i, c in enumerate(columns)]
        return planner.project(named, few)

    with calls_put_off(trickle.spark):
        doubled()  # names and constants are looked up once
        monkeypatch.setattr(client, "send_command", noted)
        found = doubled()
        assert isinstance(found, Later) and not sent
        assert kind_of(found) == "Project" and not sent
        assert int(found.output().size()) == 2
        assert len(sent) == 1
        monkeypatch.undo()
        assert [tuple(row) for row in planner.frame(found).collect()] == [(0, 0), (2, 4), (4, 8)]


def test_objects_that_nobody_needs_are_told_with_the_next_calls(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    client = trickle.spark.sparkContext._gateway._gateway_client
    jvm = trickle.spark._jvm
    gateway = trickle.spark.sparkContext._gateway.java_gateway_server.getGateway()
    kept = jvm.java.util.ArrayList()
    places = [kept._target_id]
    lost = jvm.java.util.ArrayList()
    places.append(lost._target_id)
    with calls_put_off(trickle.spark):
        client.finalizer_deque.append((client, lost._target_id))
        other = ("someone else", "o1")
        client.finalizer_deque.appendleft(other)
        assert int(planner.seq([]).size()) == 0
        assert client.finalizer_deque.pop() == other
        assert [gateway.getBindings().containsKey(place) for place in places] == [True, False]


def test_several_answers_are_told_by_one_call(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 2)
    at_once = column_ids(output(plan)), [kind_of(a.dataType()) for a in output(plan)]
    with calls_put_off(trickle.spark):
        columns = output(plan)
        assert column_ids(columns) == at_once[0]
        assert texts([a.dataType() for a in columns], "typeName") == ["long", "long"]
        assert texts([], "typeName") == []


def test_an_error_is_that_of_the_call(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 2)
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"), calls_put_off(trickle.spark):
        condition = planner.session.sessionState().sqlParser().parseExpression("no > 1")
        planner.frame(planner.filter(condition, plan))


def test_what_was_never_made_is_never_used(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 2)
    with calls_put_off(trickle.spark):
        wrong = later(plan).withNewChildren(planner.seq([plan, plan]))
        after = planner.project([], wrong)
        with pytest.raises(Exception, match=r"."):
            wrong.made()
        with pytest.raises(RuntimeError, match="never made"):
            after.made()
        planner.seq([plan])  # the next list has calls of the same numbers
        with pytest.raises(RuntimeError, match="never made"):
            planner.project([], after)
        assert len(output(plan)) == 2


def test_a_call_that_gave_nothing_stands_for_nothing_else(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 2)
    with calls_put_off(trickle.spark):
        table = planner.jvm.java.util.HashMap()
        nothing = table.put("a", "b")
        assert table.size() == 1
        planner.seq([plan])
        with pytest.raises(RuntimeError, match="never made"):
            planner.filter(nothing, plan)


def test_it_is_no_value(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 2)
    with calls_put_off(trickle.spark):
        name = later(plan).output()
        for misuse in (str, int, list, lambda one: f"{one}", lambda one: one == 1):
            with pytest.raises(TypeError):
                misuse(name)


def test_threads_do_not_take_over_each_other_s_calls(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 2)
    failed = list[BaseException]()

    def use(of: Later) -> None:
        try:
            of.made()
        except RuntimeError as error:
            failed.append(error)

    with calls_put_off(trickle.spark):
        found = planner.project([], plan)
        other = threading.Thread(target=use, args=(found,))
        other.start()
        other.join()
        assert len(failed) == 1
        found.made()


def test_texts_with_odd_characters_are_handed_over_as_they_are(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 1)
    odd = ("a\nb", "\\n", "a\tb", "\x01", "\x02 b", "ü€😀", "", "#1", "ro1")
    with calls_put_off(trickle.spark):
        columns = [planner.alias(planner.literal(i), name) for i, name in enumerate(odd)]
        found = planner.frame(planner.project(columns, plan)).columns
    assert found == list(odd)


def test_objects_that_are_no_longer_needed_are_let_go(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    plan = _numbers(planner, 1)
    bindings = trickle.spark.sparkContext._gateway.java_gateway_server.getGateway().getBindings()

    def some() -> None:
        with calls_put_off(trickle.spark):
            columns = [planner.alias(planner.literal(0), f"c{i}") for i in range(300)]
            planner.project(columns, plan).made()

    some()
    before = len(bindings)
    for _ in range(5):
        some()
    assert len(bindings) < before + 900  # 300 of the last time, and few others


def test_texts_of_a_sequence_that_is_there_are_texts(trickle: Trickle) -> None:
    """Such as the names of partition columns."""
    planner = Planner(trickle.spark)
    names = planner.session.sessionState().sqlParser().parseMultipartIdentifier("a.b")
    with calls_put_off(trickle.spark):
        assert items(names) == ["a", "b"]
