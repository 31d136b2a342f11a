"""When two rows are the same row: equality of the stored values, not of SQL.

SQL calls 'abc' and 'ABC' equal under a collation, −0.0 and 0.0 always, and cannot compare maps at all. Netting
and finding rows to delete must tell them apart, so both use the encoding below.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from spark_trickle.catalyst.plan import Planner
from spark_trickle.names import WEIGHT


def net(frame: DataFrame) -> DataFrame:
    """The weights of identical rows summed, zeros dropped. The last column is the weight."""
    fields = frame.schema.fields[:-1]
    if not any(needs_encoding(field.dataType) for field in fields):
        return _net_plainly(frame)
    encoded = [f"__st_e{i}" for i in range(len(fields))]
    coded = [i for i, field in enumerate(fields) if needs_encoding(field.dataType)]
    names = [f"__st_c{i}" for i in range(len(fields))]
    flat = frame.toDF(*names, WEIGHT)
    keys = [
        encode(F.col(names[i]), fields[i].dataType).alias(encoded[i]) if i in coded else F.col(names[i])
        for i in range(len(fields))
    ]
    values = [F.first(F.col(names[i])).alias(names[i]) for i in coded]
    summed = flat.groupBy(*keys).agg(*values, F.sum(F.col(WEIGHT)).alias(WEIGHT))
    kept = summed.where(F.col(WEIGHT) != 0).select(*names, WEIGHT)
    return kept.toDF(*[field.name for field in fields], WEIGHT)


def _net_plainly(frame: DataFrame) -> DataFrame:
    """The same where SQL equality is identity: built as a plan, which costs a tenth of the calls into the JVM."""
    planner = Planner(frame.sparkSession)
    plan = planner.gathered(planner.analyzed(frame))
    columns, weight = plan.output().init(), plan.output().last()
    total = planner.alias(planner.sum_of(weight), WEIGHT)
    summed = planner.aggregate(columns, columns.appended(total), plan)
    return planner.frame(planner.filter(planner.unequal(total.toAttribute(), planner.literal(0)), summed))


def needs_encoding(data_type: DataType) -> bool:
    """True if SQL equality is coarser than identity on this type, or missing."""
    match data_type:
        case FloatType() | DoubleType() | MapType() | VariantType() | CalendarIntervalType():
            return True
        case StringType():
            return _collated(data_type)
        case ArrayType():
            return needs_encoding(data_type.elementType)
        case StructType():
            return any(needs_encoding(field.dataType) for field in data_type.fields)
        case _:
            return False


def encode(column: Column, data_type: DataType) -> Column:
    """A value that is equal exactly when the stored value is."""
    if not needs_encoding(data_type):
        return column
    match data_type:
        case FloatType() | DoubleType():
            return column.cast("string")  # the shortest text that reads back as the same number
        case StringType():
            return column.cast("binary")
        case MapType(keyType=key, valueType=value):
            return F.transform(
                F.map_entries(column),
                lambda entry: F.struct(
                    encode(entry["key"], key).alias("k"), encode(entry["value"], value).alias("v")
                ),
            )
        case ArrayType(elementType=element):
            return F.transform(column, lambda item: encode(item, element))
        case StructType(fields=fields):
            parts = [encode(column.getField(f.name), f.dataType).alias(f"f{i}") for i, f in enumerate(fields)]
            return F.when(column.isNotNull(), F.struct(*parts))
        case VariantType():
            return F.when(
                column.isNotNull(),
                F.struct(F.schema_of_variant(column).alias("t"), F.to_json(column).alias("v")),
            )
        case _:
            return column.cast("string")


def _collated(data_type: StringType) -> bool:
    return getattr(data_type, "collation", "UTF8_BINARY") not in {"UTF8_BINARY", "", None}
