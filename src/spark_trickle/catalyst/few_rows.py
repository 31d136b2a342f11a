"""Settings of the session that evaluates rows at hand: nothing is spread, broadcast or generated for a few thousand rows."""

from __future__ import annotations

_EXCHANGING = (
    "catalyst.optimizer.PushDownLeftSemiAntiJoin",
    "catalyst.optimizer.PushLeftSemiLeftAntiThroughJoin",
)
"""Rules that move joins below what brings rows into one partition, and then exchange them."""
_IN_VAIN = (
    "catalyst.optimizer.CostBasedJoinReorder",
    "catalyst.optimizer.InjectRuntimeFilter",
    "catalyst.optimizer.OptimizeOneRowRelationSubquery",
    "delta.metric.OptimizeConditionalIncrementMetric",
    "delta.optimizer.RangePartitionIdRewrite",
    "delta.stats.PrepareDeltaScan",
    "execution.datasources.PushVariantIntoScan",
    "execution.datasources.SchemaPruning",
    "execution.dynamicpruning.CleanupDynamicPruningFilters",
    "execution.dynamicpruning.PartitionPruning",
)
"""Rules that look for what no plan over rows at hand has, such as tables.

None that makes expressions simpler: what Spark proves away in the full query, it must prove away here, or an error
that the query never meets would be met.
"""
FOR_FEW_ROWS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # Spark takes a join for as large as its sides multiplied, and would spread it.
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    # What else must hold of rows that are at hand already: finding out takes longer than looking at them.
    "spark.sql.constraintPropagation.enabled": "false",
    # Code that is generated for a query has to be written, looked up and, at first, interpreted: for few rows Spark's own
    # operators, which all queries share, are faster.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.{rule}" for rule in (*_EXCHANGING, *_IN_VAIN)
    ),
}
