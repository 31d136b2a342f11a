"""The catalog on both databases it supports. Every test that takes `url` or `catalog` runs twice."""
