"""Settings of the session that evaluates rows at hand: nothing is spread, broadcast or generated for a few thousand rows."""

from __future__ import annotations

_EXCHANGING = (
    "catalyst.optimizer.PushDownLeftSemiAntiJoin",
    "catalyst.optimizer.PushLeftSemiLeftAntiThroughJoin",
)
"""Rules that move joins below what brings rows into one partition, and then exchange them."""
_IN_VAIN = (
    "catalyst.optimizer.BooleanSimplification",
    "catalyst.optimizer.CollapseWindow",
    "catalyst.optimizer.CombineConcats",
    "catalyst.optimizer.CostBasedJoinReorder",
    "catalyst.optimizer.EliminateAggregateFilter",
    "catalyst.optimizer.EliminateAsOfJoin",
    "catalyst.optimizer.EliminateSerialization",
    "catalyst.optimizer.FoldablePropagation",
    "catalyst.optimizer.GenerateOptimization",
    "catalyst.optimizer.InferFiltersFromGenerate",
    "catalyst.optimizer.InferWindowGroupLimit",
    "catalyst.optimizer.InjectRuntimeFilter",
    "catalyst.optimizer.LimitPushDown",
    "catalyst.optimizer.LimitPushDownThroughWindow",
    "catalyst.optimizer.MergeScalarSubqueries",
    "catalyst.optimizer.OptimizeCsvJsonExprs",
    "catalyst.optimizer.OptimizeJoinCondition",
    "catalyst.optimizer.OptimizeOneRowRelationSubquery",
    "catalyst.optimizer.OptimizeRand",
    "catalyst.optimizer.OptimizeUpdateFields",
    "catalyst.optimizer.OptimizeWindowFunctions",
    "catalyst.optimizer.PushFoldableIntoBranches",
    "catalyst.optimizer.RemoveRedundantAggregates",
    "catalyst.optimizer.SimplifyBinaryComparison",
    "catalyst.optimizer.SimplifyCaseConversionExpressions",
    "catalyst.optimizer.SimplifyConditionals",
    "catalyst.optimizer.SimplifyDateTimeConversions",
    "catalyst.optimizer.TransposeWindow",
    "catalyst.optimizer.UnwrapCastInBinaryComparison",
    "delta.metric.OptimizeConditionalIncrementMetric",
    "delta.optimizer.RangePartitionIdRewrite",
    "delta.stats.PrepareDeltaScan",
    "execution.datasources.PushVariantIntoScan",
    "execution.datasources.SchemaPruning",
    "execution.datasources.v2.V2ScanRelationPushDown",
    "execution.dynamicpruning.CleanupDynamicPruningFilters",
    "execution.dynamicpruning.PartitionPruning",
)
"""Rules that look for tables and for expressions to be simpler: looking takes longer than what is won on few rows."""
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
