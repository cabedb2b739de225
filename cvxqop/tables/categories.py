"""Categories of a table: one entry a declared level, of which a record has one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvxqop.errors import OptionError
from cvxqop.tables.cells import MISSING, each, word_in
from cvxqop.tables.columns import Array, Feature, check_rule

__all__ = ["Category", "boolean"]


@dataclass(frozen=True)
class Category:
    """A column of words, of which a record has one, with public levels.

    Coded to one entry a level, 1 for that of the record and 0 for the others: the entries have norm
    1, however many levels there are. Coefficients are told against the first level.

    Words are compared after blanks at both ends are taken off, capitals and small letters apart. A
    whole number is the same word as an integer, a float and a text. A missing cell is an empty one,
    NaN, None, or a word such as NA or null that is no declared level.

    Parameters
    ----------
    levels : list, or mapping {level: list of other spellings}
        The possible levels: texts, numbers or Booleans.
    missing, unknown : {"drop", "own"} or a level, optional
        What a missing cell, and a word that is no level, become: the record is dropped, they have
        a level of their own, or are taken for a declared one. None: the rule of the schema.

    Raises
    ------
    OptionError
        There are fewer than two levels, two are spelled alike, or a rule is none.

    Examples
    --------
    >>> region = Category(["N", "E", "S"], unknown="own")
    >>> region.code(region.read(["E", "Mars", ""])).tolist()
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [nan, nan, nan, nan]]
    >>> sex = Category({"F": ["female", "f"], "M": ["male", "m"]})
    >>> sex.code(sex.read(["female", "M"])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    levels: Any
    missing: Any = None
    unknown: Any = None
    words: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = self.levels
        if not isinstance(given, list | tuple | Mapping):
            raise OptionError(
                'Category: levels must be a list, such as ["F", "M"], or a dict {level: list of '
                "other spellings}. They are stated, never read from the data."
            )
        pairs = given.items() if isinstance(given, Mapping) else ((level, ()) for level in given)
        spelled: dict[str, list[str]] = {}
        for level, others in pairs:
            if not isinstance(others, list | tuple):
                raise OptionError(f"Category: the spellings of {level!r} must be a list.")
            words = [word_in(one) for one in (level, *others)]
            if not words[0] or None in words or words[0] in spelled:
                raise OptionError(
                    "Category: levels are different texts, numbers or Booleans, each given once; "
                    f"{level!r} is not."
                )
            spelled[words[0]] = list(dict.fromkeys(word for word in words if word is not None))
        if len(spelled) < 2:
            raise OptionError("Category: there must be two levels or more.")
        every = list(itertools.chain(*spelled.values()))
        if len(set(every)) < len(every):
            raise OptionError("Category: two levels share a spelling.")
        object.__setattr__(self, "words", tuple(spelled))
        object.__setattr__(self, "levels", spelled)
        for name in ("missing", "unknown"):
            rule = getattr(self, name)
            if rule is not None:
                check_rule(f"Category: {name}", rule, word_in(rule) in spelled)

    def ruled(self, missing: Any, unknown: Any) -> Category:
        """As `Column`."""
        missing = missing if self.missing is None else self.missing
        unknown = unknown if self.unknown is None else self.unknown
        return replace(self, missing=missing, unknown=unknown)

    def _place(self, rule: Any) -> float | None:
        """The place of a cell to which this rule applies, NaN for none; None for an own level."""
        if rule is None or (isinstance(rule, str) and rule in ("drop", "own")):
            return None if rule == "own" else math.nan
        return float(self.words.index(str(word_in(rule))))

    @property
    def _names(self) -> tuple[str, ...]:
        """What the entries stand for: the levels, and those of their own."""
        own = {"missing": self.missing, "other": self.unknown}
        return (
            *(f"= {word}" for word in self.words),
            *(name for name, rule in own.items() if self._place(rule) is None),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """What a target may be."""
        return tuple(level.removeprefix("= ") for level in self._names)

    def features(self, name: str) -> tuple[Feature, ...]:
        """As `Column`."""
        names = [f"{name} {level}" for level in self._names]
        against = f"against {self.words[0]}"
        told = ["the reference", *(against for _ in names[1:])]
        return tuple(Feature(one, f"{one}, {word}") for one, word in zip(names, told, strict=True))

    def read(self, cells: Any) -> Array:
        """As `Column`: the position of the level, their number for an unknown word."""
        places = {word: i for i, words in enumerate(self.levels.values()) for word in words}
        return each(lambda cell: _found(word_in(cell), places, len(self.words)), cells)

    def code(self, values: Array) -> Array:
        """As `Column`."""
        k, last = len(self.words), len(self._names)
        own = float(last - 1)
        places = np.where(values < k, values, np.nan)
        for found, rule in ((values == k, self.unknown), (np.isnan(values), self.missing)):
            place = self._place(rule)
            places = np.where(found, own if place is None else place, places)
            own -= float(place is None)
        entries = (places[:, None] == np.arange(last)).astype(float)
        return np.where(np.isnan(places)[:, None], np.nan, entries)

    def to_units(self) -> tuple[Array, Array]:
        """As `Column`: what each level has more than the first."""
        k = len(self._names)
        T, first = np.eye(k), np.eye(k)[0]
        return T - np.outer(np.ones(k), first), first

    def counts(self, values: Array) -> dict[str, int]:
        """As `Column`."""
        k = len(self.words)
        return {
            "read": int(np.sum(values < k)),
            "unknown": int(np.sum(values == k)),
            "missing": int(np.sum(np.isnan(values))),
        }

    def describe(self) -> tuple[str, str]:
        """As `Column`."""
        told = {"drop": "dropped", "own": "a level of its own"}
        rules = {"missing": self.missing, "unknown": self.unknown}
        words = (
            f"{name}: {told.get(str(rule), f'taken for {word_in(rule)}')}"
            for name, rule in rules.items()
        )
        return "one of " + ", ".join(self.words), "; ".join(words)


def boolean() -> Category:
    """False or True, as a Boolean, 0 or 1, or in the usual words."""

    def written(*words: str) -> list[str]:
        return [form for word in words for form in (word, word.upper(), word.capitalize())]

    no = dict.fromkeys(["0", *written("false", "no", "n", "f")])
    yes = dict.fromkeys(["1", *written("true", "yes", "y", "t")])
    return Category({"False": list(no), "True": list(yes)})


def _found(word: str | None, places: Mapping[str, int], unknown: int) -> float:
    if word is not None and word in places:
        return float(places[word])
    return math.nan if word is None or word.lower() in MISSING else float(unknown)
