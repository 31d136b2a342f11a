"""Stream tables for Apache Spark and Delta Lake."""
