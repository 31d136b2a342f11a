"""A tour in a temporary folder: two Delta tables, three stream tables, a few changes, a refresh, a proof."""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryDirectory

from spark_trickle import Trickle
from spark_trickle.cli.answers import refresh_line
from spark_trickle.cli.failures import report
from spark_trickle.cli.progress import Spinner, quiet

ROWS = {"customers": 40, "orders": 300}

TABLES = {
    "customers": """
        SELECT id, concat('Customer ', id) AS name,
               element_at(array('Bern', 'Lyon', 'Oslo', 'Porto', 'Riga'), CAST(id % 5 AS INT) + 1) AS city
        FROM range({rows})""",
    "orders": """
        SELECT id, id * 7 % 40 AS customer_id, CAST(5 + id * 37 % 200 AS DECIMAL(10, 2)) AS amount,
               if(id % 11 = 0, 'cancelled', 'paid') AS state
        FROM range(1, {rows} + 1)""",
}

STREAM_TABLES = {
    "paid_orders": """
        SELECT o.id, o.amount, c.name, c.city
        FROM orders o JOIN customers c ON o.customer_id = c.id
        WHERE o.state = 'paid'""",
    "revenue_by_city": """
        SELECT city, count(*) AS orders, sum(amount) AS revenue
        FROM paid_orders GROUP BY city""",
    "top_cities": """
        SELECT city, revenue
        FROM revenue_by_city WHERE revenue > 5500""",
}

CHANGES = (
    "INSERT INTO orders VALUES (301, 4, 120.00, 'paid'), (302, 9, 80.50, 'paid')",
    "UPDATE customers SET city = 'Oslo' WHERE id = 3",
    "DELETE FROM orders WHERE id <= 3",
)


def tour(trickle: Trickle) -> None:
    with working("Starting Spark…"):
        trickle.spark  # noqa: B018 - the first use starts it

    chapter("Two Delta tables")
    for name, query in TABLES.items():
        with working(f"Creating {name}…"):
            trickle.sql(f"CREATE TABLE {name} USING delta AS {query.format(rows=ROWS[name])}")
        print(f"  {name}: {ROWS[name]} rows")

    chapter("Three stream tables, each reading the one before")
    for name, query in STREAM_TABLES.items():
        with working(f"Creating {name}…"):
            created = trickle.create_stream_table(name, query)
        print(f"  {' '.join(query.split())}")
        if created is not None:
            print(f"    {refresh_line(created)}")

    chapter("The sources change")
    for statement in CHANGES:
        with working("Changing the sources…"):
            trickle.sql(statement)
        print(f"  {statement}")

    chapter("What would a refresh of paid_orders do?")
    with working("Explaining…"):
        explanation = trickle.explain("paid_orders")
    print(f"  Support: {explanation.support}")
    if explanation.decision is not None:
        print(f"  Next refresh: {explanation.decision.action}, because {explanation.decision.reason}")
    for line in explanation.operators:
        print(f"  {line}")

    chapter("Refresh: only what changed is computed")
    refresh_all(trickle)

    chapter("Proof: each table against its full query")
    for name in STREAM_TABLES:
        with working(f"Verifying {name}…"):
            verified = trickle.verify(name)
        print(f"  {name}: {'equal' if verified.equal else 'DIFFERENT'} at version {verified.version}")
        if not verified.equal:
            raise SystemExit(1)

    chapter("Refresh again: nothing to do")
    refresh_all(trickle)

    chapter("The history, newest first")
    history = trickle.refresh_history("top_cities")[
        ["id", "action", "rows_inserted", "rows_deleted", "reason"]
    ]
    print(indented(history.to_string(index=False)))

    chapter("The result")
    with working("Reading top_cities…"):
        cities = trickle.sql("SELECT city, revenue FROM top_cities").collect()
    for city, revenue in sorted(cities, key=lambda row: -row.revenue):
        print(f"  {city:<6} {revenue:>9,}")


def refresh_all(trickle: Trickle) -> None:
    for name in STREAM_TABLES:
        with working(f"Refreshing {name}…"):
            result = trickle.refresh_stream_table(name)
        print(f"  {refresh_line(result)}")


def chapter(title: str) -> None:
    print(f"\n{title}", flush=True)


def working(text: str) -> Spinner:
    return Spinner(text, first=text)


def indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def main() -> int:
    # A minute of Spark never repays the optimising compiler.
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    print("spark-trickle: a SELECT kept up to date as a Delta table")
    try:
        with quiet(), TemporaryDirectory(prefix="trickle-demo-") as home, Trickle(home=home) as trickle:
            tour(trickle)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, as_json=False)
    print("\nYour turn: .venv/bin/trickle --help")
    return 0


if __name__ == "__main__":
    sys.exit(main())
