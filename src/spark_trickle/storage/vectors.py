"""The deletion vectors of tables: which rows of a file are hidden. None is ever written twice, so they are kept."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from spark_trickle.catalyst.java import java, java_list
from spark_trickle.catalyst.later import calls_put_off
from spark_trickle.storage.parquet import Positions

Descriptor = Callable[[], Any]
"""Gives Delta's description of a vector; asked only where it is read."""
_KEPT = 4096


class Vectors:
    """Deletion vectors as read in one Spark session, shared by the threads that use it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = java(spark)
        self._kept: OrderedDict[tuple[str, str], Positions] = OrderedDict()
        self._stores: dict[str, Any] = {}
        self._guard = threading.Lock()

    def positions(self, log: Any, place: str, vectors: Mapping[str, Descriptor]) -> dict[str, Positions]:
        """The row numbers that each of a table's vectors holds; those that are not known are read together."""
        found = dict[str, Positions]()
        with self._guard:
            for vector in vectors:
                if (place, vector) in self._kept:
                    self._kept.move_to_end((place, vector))
                    found[vector] = self._kept[place, vector]
        missing = [vector for vector in vectors if vector not in found]
        if missing:
            read = self._read(log, place, [vectors[vector] for vector in missing])
            found |= dict(zip(missing, read, strict=True))
        with self._guard:
            self._kept.update({(place, vector): found[vector] for vector in missing})
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def _read(self, log: Any, place: str, descriptors: Sequence[Descriptor]) -> list[Positions]:
        with calls_put_off(self._spark):
            arrays = [self.stored(log, place, descriptor()).toArray() for descriptor in descriptors]
            every = java_list(self._jvm, arrays).toArray()
            text = str(self._jvm.java.util.Arrays.deepToString(every))
        return [np.array(numbers, dtype=np.int64) for numbers in json.loads(text)]

    def stored(self, log: Any, place: str, descriptor: Any) -> Any:
        """Delta's own form of a vector."""
        store = self._store(log, place)
        return self._delta.deletionvectors.StoredBitmap.create(descriptor, log.dataPath()).load(store)

    def written(
        self, log: Any, place: str, vectors: Sequence[bytes], cardinalities: Sequence[int]
    ) -> list[Any]:
        """Write vectors into a file of the table; Delta's descriptions of them."""
        store, name = self._store(log, place), self._jvm.java.util.UUID.randomUUID()
        folder = store.pathWithFileSystem(log.dataPath())
        some, none = self._jvm.scala.Option.apply, self._jvm.scala.Option.empty()
        describe = self._delta.actions.DeletionVectorDescriptor.onDiskWithRelativePath
        writer = store.createWriter(store.generateFileNameInTable(folder, name, ""))
        try:
            ranges = [writer.write(vector) for vector in vectors]
        finally:
            writer.close()
        return [
            describe(name, "", r.length(), many, some(r.offset()), none)
            for r, many in zip(ranges, cardinalities, strict=True)
        ]

    def _store(self, log: Any, place: str) -> Any:
        with self._guard:
            if place not in self._stores:  # to make one means to copy all settings of Hadoop
                self._stores[place] = self._delta.storage.dv.HadoopFileSystemDVStore(log.newDeltaHadoopConf())
            return self._stores[place]

    @property
    def _delta(self) -> Any:
        return self._jvm.org.apache.spark.sql.delta
