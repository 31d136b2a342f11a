"""The stored form of a stream table: exactly the query's columns and, only if needed, the hidden `__st`."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from spark_trickle.names import PREFIX, quote

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    # A checkpoint is synchronous and takes a second: every tenth commit would be felt.
    "delta.checkpointInterval": "100",
}
_NEEDS_MAPPING = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class Layout:
    """The query's columns, and the hidden ones that are stored in one struct."""

    visible: StructType
    hidden: StructType

    @classmethod
    def of(cls, query: StructType, hidden: StructType) -> Layout:
        """Every column and everything inside it may be NULL, as in a table that Spark creates from a query."""
        return cls(_nullable(query), _nullable(hidden))

    @property
    def schema(self) -> StructType:
        """The table's schema."""
        fields = [StructField(f.name, f.dataType, True, _comment(f)) for f in self.visible.fields]
        if self.hidden.fields:
            fields.append(StructField(PREFIX, self.hidden, True))
        return StructType(fields)

    @property
    def schema_types(self) -> list[tuple[str, str]]:
        """The table's columns as `DataFrame.dtypes` has them."""
        return [(f.name, f.dataType.simpleString()) for f in self.schema.fields]

    @property
    def properties(self) -> dict[str, str]:
        names = "".join(f.name for f in self.visible.fields)
        mapped = {"delta.columnMapping.mode": "name"} if _NEEDS_MAPPING & set(names) else {}
        return PROPERTIES | mapped

    @property
    def flat(self) -> StructType:
        """Visible and hidden columns side by side, the form in which rows are computed and compared."""
        hidden = [StructField(f"{PREFIX}_{f.name}", f.dataType, True) for f in self.hidden.fields]
        visible = [StructField(f.name, f.dataType, True) for f in self.visible.fields]
        return StructType(visible + hidden)

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.flat.fields]

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The columns of the flat form, and where the stored form has them."""
        found: dict[str, tuple[str, ...]] = {f.name: (f.name,) for f in self.visible.fields}
        found.update((f"{PREFIX}_{f.name}", (PREFIX, f.name)) for f in self.hidden.fields)
        return found

    def unpack(self) -> list[str]:
        """Expressions from the stored form to the flat one."""
        hidden = [f"{PREFIX}.{f.name} AS {PREFIX}_{f.name}" for f in self.hidden.fields]
        return [quote(f.name) for f in self.visible.fields] + hidden

    def pack(self, frame: DataFrame, *extra: str) -> DataFrame:
        """A flat frame in the stored form, every column in the table's exact type; `extra` expressions follow.

        A cast also sheds what a column brings along from its source, such as the length of a CHAR.
        """
        spark = frame.sparkSession
        flat = frame.toDF(*self.names, *frame.columns[len(self.names) :])
        columns = [
            f"CAST({quote(f.name)} AS {sql_type(spark, f.dataType)}) AS {quote(f.name)}"
            for f in self.visible.fields
        ]
        if self.hidden.fields:
            parts = ", ".join(
                f"'{f.name}', CAST({PREFIX}_{f.name} AS {sql_type(spark, f.dataType)})"
                for f in self.hidden.fields
            )
            columns.append(f"named_struct({parts}) AS {PREFIX}")
        return flat.selectExpr(*columns, *extra)


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(f.name, _without_not_null(f.dataType), True, f.metadata) for f in schema])


def _without_not_null(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return _nullable(data_type)
        case ArrayType(elementType=element):
            return ArrayType(_without_not_null(element), True)
        case MapType(keyType=key, valueType=value):
            return MapType(_without_not_null(key), _without_not_null(value), True)
    return data_type


def _comment(field: StructField) -> dict[str, str] | None:
    """A column's comment is kept; other metadata (generation, identity, char length) belongs to its source."""
    return {"comment": field.metadata["comment"]} if field.metadata and "comment" in field.metadata else None


def sql_type(spark: SparkSession, data_type: DataType) -> str:
    """The type as SQL writes it."""
    if isinstance(data_type, ArrayType | MapType | StructType):  # names inside may need quotes
        return str(spark._jsparkSession.parseDataType(data_type.json()).sql())
    return data_type.simpleString()
