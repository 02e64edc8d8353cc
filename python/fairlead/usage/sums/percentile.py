"""Percentiles from histograms: right to one per cent for any number of requests."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def percentiles(bins: pl.DataFrame, groups: Sequence[str], shares: Sequence[int]) -> pl.DataFrame:
    """`p<share>` for each group, in the histogram's unit. `bins` are rows of `facts.bins_of`. The
    value is the mean of the bin in which the share is reached.
    """
    return percentiles_of_merged(merge_bins(bins, groups), groups, shares)


def merge_bins(bins: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """One row for each group and bin, in the order of bins."""
    return (
        bins.lazy()
        .group_by([*groups, "bin"])
        # Totals are only needed for means; a sum of integers could wrap around.
        .agg(pl.col("requests").sum(), pl.col("total").cast(pl.Float64).sum())
        .sort("bin")
        .collect()
    )


def percentiles_of_merged(
    bins: pl.DataFrame, groups: Sequence[str], shares: Sequence[int]
) -> pl.DataFrame:
    """Like `percentiles`, for merged bins."""
    columns = [_percentile(share).alias(f"p{share}") for share in shares]
    in_order = bins.lazy().with_columns(mean=pl.col("total") / pl.col("requests"))
    if groups:
        return in_order.group_by(list(groups)).agg(columns).collect()
    return in_order.select(columns).collect()


def deviation(bins: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The standard deviation (`deviation`) of each group, with each value taken as its bin's mean."""
    value = pl.col("total") / pl.col("requests")
    count = pl.col("requests").sum()
    mean = pl.col("total").cast(pl.Float64).sum() / count
    spread = (pl.col("requests") * (value - mean).pow(2)).sum() / count
    return bins.group_by(list(groups)).agg(spread.sqrt().alias("deviation"))


def _percentile(share: int) -> pl.Expr:
    reached = pl.col("requests").cum_sum() >= pl.col("requests").sum() * (share / 100)
    return pl.col("mean").filter(reached).first()
