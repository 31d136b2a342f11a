import java.util.ArrayList;
import java.util.HashSet;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.ArraySeq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/** Evaluates plans over rows at hand in the calling thread, with the operators and the settings of one session. */
public class Rows {
    private static final String SHORT = "callSite.short";
    private static final String LONG = "callSite.long";
    private static final int NEEDS_A_JOB = -1;
    private static final int MORE_THAN_A_PROJECTION = -1;

    private final SparkSession session;
    private final Properties settings;
    private final Seq spreading;
    private final ConcurrentHashMap running = new ConcurrentHashMap();
    private final ConcurrentHashMap found = new ConcurrentHashMap();

    /** `settings` are what operators find while they run; `spreading` are patterns of plans that spread rows. */
    public Rows(SparkSession session, Properties settings, Seq spreading) {
        this.session = session;
        this.settings = settings;
        this.spreading = spreading;
    }

    /**
     * How many rows the plan has, at most one more than `most`; `relation` then gives them, unless they are more. Negative where that needs a
     * job, or where some of its rows are not at hand. The number stands for the task that the operators believe to be in.
     */
    public int count(final LogicalPlan plan, final boolean analyzed, final int most, final long number) {
        final Rows rows = this;
        try {
            return ((Integer) session.withActive(new AbstractFunction0() {
                public Object apply() {
                    return Integer.valueOf(rows.withoutLookingAtTheStack(plan, analyzed, most, number));
                }
            })).intValue();
        } finally {
            running.remove(Long.valueOf(number));
        }
    }

    /**
     * The same for a plan that does nothing but project, filter and limit rows at hand, which Spark does while it
     * optimizes; negative for others.
     */
    public int countOfProjection(final LogicalPlan plan, final long number) {
        final Rows rows = this;
        return ((Integer) session.withActive(new AbstractFunction0() {
            public Object apply() {
                return Integer.valueOf(rows.projected(plan, number));
            }
        })).intValue();
    }

    /** What was found under a number, once. */
    public LocalRelation relation(long number) {
        return (LocalRelation) found.remove(Long.valueOf(number));
    }

    /** Called by another thread: the task ends before its time. */
    public void stop(long number) {
        Object task = running.putIfAbsent(Long.valueOf(number), Boolean.TRUE);
        if (task instanceof TaskContextImpl) {
            ((TaskContextImpl) task).markInterrupted("its time is over");
        }
    }

    int projected(LogicalPlan plan, long number) {
        if (!isAtHand(plan)) {
            return MORE_THAN_A_PROJECTION;
        }
        QueryExecution execution = executed(plan, false);
        if (!(execution.optimizedPlan() instanceof LocalRelation)) {
            return MORE_THAN_A_PROJECTION;
        }
        return keep(plan.output(), execution.executedPlan().executeCollect(), number);
    }

    private int keep(Seq columns, Object[] rows, long number) {
        Seq data = (Seq) ArraySeq.unsafeWrapArray(rows);
        found.put(Long.valueOf(number), new LocalRelation(columns, data, false, Option.empty()));
        return rows.length;
    }

    private boolean isAtHand(LogicalPlan plan) {
        Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            if (!(leaves.next() instanceof LocalRelation)) {
                return false;
            }
        }
        return true;
    }

    /** Spark asks for every RDD where in the user's code it is made, unless that is known. */
    int withoutLookingAtTheStack(LogicalPlan plan, boolean analyzed, int most, long number) {
        SparkContext context = session.sparkContext();
        String shortly = context.getLocalProperty(SHORT);
        String longly = context.getLocalProperty(LONG);
        context.setLocalProperty(SHORT, "refresh");
        context.setLocalProperty(LONG, "refresh");
        try {
            return evaluated(plan, analyzed, most, number);
        } finally {
            context.setLocalProperty(SHORT, shortly);
            context.setLocalProperty(LONG, longly);
        }
    }

    private int evaluated(LogicalPlan plan, boolean analyzed, int most, long number) {
        if (!isAtHand(plan)) {
            return NEEDS_A_JOB;
        }
        QueryExecution execution = executed(limited(plan, analyzed, most), analyzed);
        RDD rows = execution.executedPlan().execute();
        int partitions = rows.getNumPartitions();
        if (partitions > 1 || partitions == 1 && isExchanged(rows)) {
            return NEEDS_A_JOB;
        }
        Object[] taken = partitions == 0 ? new Object[0] : taken(rows, number);
        return taken.length > most ? taken.length : keep(execution.analyzed().output(), taken, number);
    }

    /**
     * Plans are put together of parts that were analyzed before. What Spark's analyzer would still find in one in which
     * everything is resolved is that columns beside an outer join may be NULL, or that some columns have the same id.
     */
    private QueryExecution executed(LogicalPlan plan, boolean analyzed) {
        LogicalPlan resolved = plan;
        if (!analyzed && plan.resolved() && tellsColumnsApart(plan, new HashSet())) {
            resolved = UpdateAttributeNullability$.MODULE$.apply(plan);
            resolved.setAnalyzed();
        }
        return session.sessionState().executePlan(resolved, CommandExecutionMode.SKIP());
    }

    /** The plan for at most one row more than `most`, arranged so that one task is enough. */
    public LogicalPlan limited(LogicalPlan plan, boolean analyzed, int most) {
        LogicalPlan child = plan.containsAnyPattern(spreading) ? inOnePartition(plan) : plan;
        Literal limit = new Literal(Integer.valueOf(most + 1), DataTypes.IntegerType);
        LogicalPlan limited = new GlobalLimit(limit, new LocalLimit(limit, child));
        if (analyzed) {
            limited.setAnalyzed(); // what was put around it needs nothing of the kind
        }
        return limited;
    }

    /** No two of its relations, nor two branches of a union, have columns of the same id. */
    private boolean tellsColumnsApart(LogicalPlan plan, HashSet ids) {
        if (plan instanceof LocalRelation) {
            Iterator columns = plan.output().iterator();
            while (columns.hasNext()) {
                if (!ids.add(((Attribute) columns.next()).exprId())) {
                    return false;
                }
            }
        }
        if (plan instanceof Union && !((Union) plan).duplicatesResolvedBetweenBranches()) {
            return false;
        }
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (!tellsColumnsApart((LogicalPlan) children.next(), ids)) {
                return false;
            }
        }
        return true;
    }

    /** Each of its relations in one partition: then nothing is exchanged. */
    private LogicalPlan inOnePartition(LogicalPlan plan) {
        return (LogicalPlan) plan.transformUpWithSubqueries(new AbstractPartialFunction() {
            public boolean isDefinedAt(Object node) {
                return node instanceof LocalRelation;
            }

            public Object applyOrElse(Object node, Function1 otherwise) {
                return isDefinedAt(node) ? new Repartition(1, false, (LogicalPlan) node) : otherwise.apply(node);
            }
        });
    }

    /** Some of them: what lies behind an exchange comes from another job. */
    private boolean isExchanged(RDD rows) {
        scala.collection.mutable.HashSet shuffles = (scala.collection.mutable.HashSet)
            session.sparkContext().dagScheduler().getShuffleDependenciesAndResourceProfiles(rows)._1();
        return !shuffles.isEmpty();
    }

    /** Operators need a task around them for its memory and its locks, by a number that no task has. */
    private Object[] taken(RDD rows, long number) {
        SparkEnv environment = SparkEnv.get();
        TaskMemoryManager memory = new TaskMemoryManager(environment.memoryManager(), number);
        TaskContextImpl task = new TaskContextImpl(
            0, 0, 0, number, 0, 1, memory, settings, environment.metricsSystem(), TaskMetrics.empty(), 1,
            (scala.collection.immutable.Map) Map$.MODULE$.empty()
        );
        environment.blockManager().registerTask(number); // what is broadcast is read under a lock
        TaskContext$.MODULE$.setTaskContext(task);
        try {
            if (running.putIfAbsent(Long.valueOf(number), task) != null) {
                task.markInterrupted("its time is over");
            }
            ArrayList copies = new ArrayList();
            Iterator each = rows.iterator(rows.partitions()[0], task);
            while (each.hasNext()) {
                task.killTaskIfInterrupted();
                copies.add(((UnsafeRow) each.next()).copy()); // operators use one row again for the next
            }
            return copies.toArray();
        } finally {
            task.markTaskCompleted(Option.empty());
            TaskContext$.MODULE$.unset();
            environment.blockManager().releaseAllLocksForTask(number);
            memory.cleanUpAllAllocatedMemory();
            environment.memoryManager().releaseAllExecutionMemoryForTask(number);
        }
    }
}
