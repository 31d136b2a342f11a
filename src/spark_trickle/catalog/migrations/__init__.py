"""Steps from one schema to the next, run by `spark_trickle.catalog.migrate`. They only go forward."""
