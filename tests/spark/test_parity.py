"""A stream table looks as if Spark had created it from the query itself: names, types, nullability, comments."""

from __future__ import annotations

from pyspark.sql.types import StructType

from spark_trickle import Trickle

QUERIES = {
    "columns as they are": "SELECT * FROM p",
    "computed": "SELECT id + 1 AS a, amount * 2.5 AS b, upper(name) AS c, tags[0] AS d, point.x AS e FROM p",
    "names with case and blanks": "SELECT id AS `Id No.`, name AS NaMe, 1 AS `größe` FROM p",
    "literals": "SELECT 1 AS i, 1L AS l, 1.0 AS d, 'x' AS s, DATE '2020-01-01' AS dt, true AS b, id FROM p",
    "not null becomes null": "SELECT a.id, b.id AS other, b.name FROM p a LEFT JOIN p b ON a.id = b.id + 1",
    "aggregates": "SELECT name, COUNT(*) AS n, SUM(amount) AS s, AVG(id) AS a, MAX(point) AS m FROM p GROUP BY name",
    "nested": "SELECT id, array(id, 2) AS a, map('k', amount) AS m, named_struct('x', id, 'y', tags) AS s FROM p",
    "set operation": "SELECT id, name FROM p UNION ALL SELECT NULL, code FROM p",
    "window": "SELECT id, ROW_NUMBER() OVER (PARTITION BY name ORDER BY id) AS rn FROM p",
    "first rows": "SELECT id, amount FROM p ORDER BY amount, id LIMIT 2",
    "fixed length": "SELECT code, vary, id FROM p",
}


def test_the_table_looks_as_if_spark_had_created_it(trickle: Trickle, database: str) -> None:
    trickle.sql("""
        CREATE TABLE p (
            id INT NOT NULL COMMENT 'the number', name STRING COMMENT 'whose', amount DECIMAL(12, 2) NOT NULL,
            code CHAR(3), vary VARCHAR(7) COMMENT 'short', tags ARRAY<STRING>,
            point STRUCT<x: INT NOT NULL COMMENT 'across', y: DOUBLE>, extra MAP<STRING, BIGINT>, at TIMESTAMP
        ) USING delta""")
    for number, (what, query) in enumerate(QUERIES.items()):
        trickle.create_stream_table(f"ours_{number}", query)
        mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if "blanks" in what else ""
        trickle.sql(f"CREATE TABLE theirs_{number} USING delta {mapping} AS {query}")
        ours, theirs = (trickle.spark.table(f"{whose}_{number}").schema for whose in ("ours", "theirs"))
        assert described(ours) == described(theirs), what


def described(schema: StructType) -> list[tuple[str, str, bool, str]]:
    """The types in full: nested nullability and comments included."""
    visible = [f for f in schema.fields if f.name != "__st"]
    return [(f.name, f.dataType.json(), f.nullable, (f.metadata or {}).get("comment", "")) for f in visible]
