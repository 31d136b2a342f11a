"""Table names: what is accepted, what is refused, and how the refusal reads."""

import pytest

from spark_trickle.errors import TableNameError
from spark_trickle.names import (
    TableName,
    check_new_name,
    did_you_mean,
    parse_name,
    quote,
    shown,
    split_identifier,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", TableName("spark_catalog", "default", "orders")),
        ("sales.orders", TableName("spark_catalog", "sales", "orders")),
        ("lake.sales.orders", TableName("lake", "sales", "orders")),
        ("  Sales.ORDERS ", TableName("spark_catalog", "sales", "orders")),
        ("`my sales`.`2024.q1`", TableName("spark_catalog", "my sales", "2024.q1")),
        ("`odd``name`", TableName("spark_catalog", "default", "odd`name")),
    ],
)
def test_a_name_is_completed_with_the_session_catalog(text: str, expected: TableName) -> None:
    assert parse_name(text) == expected


def test_a_name_is_completed_with_the_current_namespace() -> None:
    assert parse_name("t", "lake", "Sales") == TableName("lake", "sales", "t")
    assert parse_name("d.t", "lake", "sales") == TableName("lake", "d", "t")
    assert parse_name("c.d.t", "lake", "sales") == TableName("c", "d", "t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "A stream table needs a name."),
        ("   ", "A stream table needs a name."),
        (None, "A stream table needs a name."),
        (7, "A stream table needs a name."),
        ("a.b.c.d", "`a.b.c.d` has 4 parts; a table name has at most three."),
        ("a..b", "`a..b` has an empty part."),
        (".a", "`.a` has an empty part."),
        ("a.", "`a.` has an empty part."),
        ("``", "```` has an empty part."),
        ("` `.a", "`` `.a` has an empty part."),
        ("__st_orders", "`__st_orders` starts with `__st`, which is reserved for hidden columns and tables."),
        ("db.__ST", "`db.__ST` starts with `__st`, which is reserved for hidden columns and tables."),
        ("a`b", "`a`b` has a misplaced backtick."),
        ("`a`b", "``a`b` has a misplaced backtick."),
        ("`a` `b`", "``a` `b`` has a misplaced backtick."),
        ("`a", "``a` has an unclosed backtick."),
        ("`a``", "``a``` has an unclosed backtick."),
    ],
)
def test_a_malformed_name_is_refused_with_its_reason(text: str, message: str) -> None:
    with pytest.raises(TableNameError) as refused:
        parse_name(text)
    assert refused.value.message == message
    assert refused.value.code == "INVALID_NAME"
    assert refused.value.hint


@pytest.mark.parametrize(
    "part", ["a/b", "a\\b", "a:b", "a*", "a?", 'a"', "a<", "a>", "a|", "a\nb", "a\tb", "a\0"]
)
def test_a_name_that_cannot_be_a_folder_is_refused(part: str) -> None:
    with pytest.raises(TableNameError, match="cannot be part of a table's folder"):
        parse_name(f"db.`{part}`")


@pytest.mark.parametrize("part", [".", ".."])
def test_a_name_cannot_walk_out_of_its_folder(part: str) -> None:
    with pytest.raises(TableNameError, match="cannot be part of a table's folder"):
        parse_name(f"`{part}`")


def test_dots_and_doubled_backticks_are_ordinary_inside_backticks() -> None:
    assert split_identifier("`a.b`.c.`d``e`") == ["a.b", "c", "d`e"]


def test_quoting_doubles_backticks_and_can_be_taken_apart_again() -> None:
    assert quote("plain") == "`plain`"
    assert quote("odd`name") == "`odd``name`"
    assert split_identifier(f"{quote('a`.b')}.{quote('c')}") == ["a`.b", "c"]


@pytest.mark.parametrize(
    ("name", "full", "short", "sql"),
    [
        (
            TableName("spark_catalog", "default", "orders"),
            "spark_catalog.default.orders",
            "orders",
            "`spark_catalog`.`default`.`orders`",
        ),
        (
            TableName("spark_catalog", "sales", "2024"),
            "spark_catalog.sales.`2024`",
            "sales.`2024`",
            "`spark_catalog`.`sales`.`2024`",
        ),
        (
            TableName("lake", "default", "my t"),
            "lake.default.`my t`",
            "lake.default.`my t`",
            "`lake`.`default`.`my t`",
        ),
    ],
)
def test_a_name_is_written_in_full_in_short_and_as_sql(
    name: TableName, full: str, short: str, sql: str
) -> None:
    assert (str(name), name.short, name.sql) == (full, short, sql)
    assert parse_name(name.sql) == parse_name(str(name)) == parse_name(name.short) == name


def test_the_closest_known_name_is_suggested() -> None:
    assert did_you_mean("ordrs", ["orders", "customers"]) == "Did you mean `orders`?"
    assert did_you_mean("weather", iter(["orders", "customers"])) == ""
    assert did_you_mean("weather", []) == ""


@pytest.mark.parametrize("name", ["`my table`", "`a.b`", "db.`ü`", "`a-b`.x"])
def test_a_new_table_takes_only_letters_digits_and_underscores(name: str) -> None:
    with pytest.raises(TableNameError):
        check_new_name(parse_name(name))
    check_new_name(parse_name("db.orders_2"))


def test_names_are_shown_as_people_say_them() -> None:
    assert shown("spark_catalog.default.orders") == "orders"
    assert shown("delta.`/data/x`") == "delta.`/data/x`"
