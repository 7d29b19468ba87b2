"""A stream of a generator, mapped and narrowed, read twice."""

from __future__ import annotations

from datasets import Features, IterableDataset, Value


def numbers():
    for number in range(6):
        yield {"number": number}


stream = IterableDataset.from_generator(numbers, features=Features({"number": Value("int64")}))
doubled = stream.map(lambda row: {"number": 2 * row["number"]}).select_columns(["number"])
print("first time", len(list(doubled)))
print("second time", len(list(doubled)))
