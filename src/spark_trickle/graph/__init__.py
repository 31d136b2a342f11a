"""What depends on what. Pure.

dependencies.py  the graph over base tables and stream tables: order, upstream, downstream, cycles
"""
