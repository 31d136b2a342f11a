"""Tables by name: create, find, drop, and make the folders of an embedded home known to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_trickle.catalyst.java import java
from spark_trickle.catalyst.spark_errors import sentence_of
from spark_trickle.errors import DefinitionError, TableNameError
from spark_trickle.names import TableName, quote
from spark_trickle.storage.layout import Layout


def table_exists(spark: SparkSession, name: TableName) -> bool:
    """Whether a table or view of that name is known to Spark."""
    return bool(spark.catalog.tableExists(name.sql))


def create_table(spark: SparkSession, name: TableName, layout: Layout, properties: Mapping[str, str]) -> str:
    """An empty stream table; returns its location."""
    builder = (
        DeltaTable.create(spark)
        .tableName(f"{quote(name.database)}.{quote(name.table)}")
        .addColumns(layout.schema)
    )
    for key, value in {**layout.properties, **properties}.items():
        builder = builder.property(key, value)
    try:
        builder.execute()
    except PySparkException as error:
        raise DefinitionError(
            f"The table `{name.short}` cannot be created: {sentence_of(error)}",
            hint="Check the types of its columns and that the warehouse folder can be written.",
            code=error.getCondition() or "CREATE_FAILED",
        ) from None
    except Exception as error:
        raise DefinitionError(
            f"The table `{name.short}` cannot be created: {sentence_of(error)}",
            hint="Check that the warehouse folder can be written and has room.",
            code="CREATE_FAILED",
        ) from None
    return location_of(spark, name)


def drop_table(spark: SparkSession, name: TableName) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {name.sql}")


def location_of(spark: SparkSession, name: TableName) -> str:
    """Where a table of the session catalog lies."""
    jvm = java(spark)
    metadata = spark._jsparkSession.sessionState().catalog().getTableMetadata(_identifier(spark, name))
    return str(jvm.org.apache.hadoop.fs.Path(metadata.location()).toString())


def check_database(spark: SparkSession, name: TableName) -> None:
    if name.catalog != "spark_catalog":
        raise TableNameError(
            f"A stream table lives in Spark's session catalog, not in `{name.catalog}`.",
            hint="Write `database.table`.",
            code="UNSUPPORTED_CATALOG",
        )
    if not spark.catalog.databaseExists(f"{quote(name.catalog)}.{quote(name.database)}"):
        raise TableNameError(
            f"There is no database `{name.database}`.",
            hint=f"CREATE DATABASE {quote(name.database)}.",
            code="UNKNOWN_DATABASE",
        )


def register_folders(spark: SparkSession, warehouse: Path) -> None:
    """Make every Delta folder of a warehouse known under its name: the embedded catalog lives in memory.

    The tables become managed ones, so that DROP TABLE removes the folder as it did where it was created.
    """
    if not warehouse.is_dir():
        return
    for folder in sorted(warehouse.iterdir()):
        if folder.name.endswith(".db") and folder.is_dir():
            database = folder.name.removesuffix(".db")
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {quote(database)}")
            for inner in sorted(folder.iterdir()):
                _register(spark, database, inner)
        else:
            _register(spark, "default", folder)


def _register(spark: SparkSession, database: str, folder: Path) -> None:
    """One folder as a managed table. Delta keeps the schema itself, so none is given and nothing is read."""
    if not (folder / "_delta_log").is_dir():
        return
    jvm = java(spark)
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = _identifier(spark, TableName("spark_catalog", database, folder.name))
    if catalog.tableExists(identifier):
        return
    package = jvm.org.apache.spark.sql.catalyst.catalog
    some = jvm.scala.Option.apply
    storage = package.CatalogStorageFormat.empty()
    parts = [getattr(storage, f"copy$default${i + 1}")() for i in range(int(storage.productArity()))]
    parts[0] = some(jvm.java.net.URI.create(folder.resolve().as_uri()))
    schema = jvm.org.apache.spark.sql.types.StructType()
    kind = package.CatalogTableType.MANAGED()
    fields = [identifier, kind, storage.copy(*parts), schema, some("delta")]
    companion = getattr(getattr(package, "CatalogTable$"), "MODULE$")
    fields += [getattr(companion, f"apply$default${i + 1}")() for i in range(len(fields), _arity(jvm))]
    catalog.createTable(companion.apply(*fields), True, False)


def _arity(jvm: Any) -> int:
    """How many fields Spark's CatalogTable has."""
    name = "org.apache.spark.sql.catalyst.catalog.CatalogTable"
    constructors = jvm.java.lang.Class.forName(name).getConstructors()
    return max(int(c.getParameterCount()) for c in constructors)


def _identifier(spark: SparkSession, name: TableName) -> Any:
    jvm = java(spark)
    some = jvm.scala.Option.apply
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        name.table, some(name.database), some(name.catalog)
    )
