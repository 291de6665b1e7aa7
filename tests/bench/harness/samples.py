"""Samples of one run, asked by what they are of."""

import statistics


class Samples:
    def __init__(self, samples):
        self._samples = [_with_flat_wakes(sample) for sample in samples]

    def where(self, **wanted):
        return [
            sample for sample in self._samples
            if all(sample.get(key) == value for key, value in wanted.items())
        ]

    def values(self, figure, **wanted):
        return [sample[figure] for sample in self.where(**wanted) if sample.get(figure) is not None]

    def median(self, figure, **wanted):
        values = self.values(figure, **wanted)
        return statistics.median(values) if values else None

    def least(self, figure, **wanted):
        return min(self.values(figure, **wanted), default=None)

    def ratio(self, figure, ours, theirs, **wanted):
        """The median of the ratios of those samples that were taken side by side."""
        others = {
            sample["repetition"]: sample[figure] for sample in self.where(**wanted, **theirs)
        }
        ratios = [
            sample[figure] / others[sample["repetition"]]
            for sample in self.where(**wanted, **ours)
            if others.get(sample["repetition"])
        ]
        return statistics.median(ratios) if ratios else None

    def each(self, key, **wanted):
        """The different values of one key, in order of appearance."""
        return list(dict.fromkeys(sample[key] for sample in self.where(**wanted)))


def _with_flat_wakes(sample):
    """A crowd is woken several times in one sample: their medians stand for it."""
    return {
        key: statistics.median(value) if isinstance(value, list) and value else value
        for key, value in sample.items()
    }
