"""A release as JSON, and back: what is published can be used elsewhere.

Floats are written with all of their digits. Nothing but dataclasses of public numbers that are
listed here is ever made from a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np

from cvxqop.errors import ProblemError
from cvxqop.guarantee import Guarantee
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.gradient import CalibratedGradient
from cvxqop.privacy.gaussian.truncated import CalibratedTruncatedGaussian
from cvxqop.privacy.law import NoiseLaw
from cvxqop.privacy.linear.calibrated import CalibratedLinear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.paper.calibrated import CalibratedPaper
from cvxqop.privacy.paper.profile import PaperConstants
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.wishart.calibrated import CalibratedWishart
from cvxqop.privacy.wishart.spectral_mechanism import CalibratedSpectral
from cvxqop.travel import Description

__all__ = ["matched", "read", "rebuilt", "written"]

T = TypeVar("T")

FORMAT = 1
KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        CalibratedAdaptive,
        CalibratedGaussian,
        CalibratedGradient,
        CalibratedLinear,
        CalibratedPaper,
        CalibratedSpectral,
        CalibratedTruncatedGaussian,
        CalibratedWishart,
        Description,
        GaussianRelease,
        Guarantee,
        NoiseLaw,
        PaperConstants,
        Sensitivity,
    )
}
SPECIAL = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}


def written(what: str, content: Mapping[str, Any], readable: Mapping[str, Any]) -> str:
    """JSON of a release: ``readable`` for people, and ``release``, from which it is made again.

    Raises
    ------
    ProblemError
        A variable has an attribute that cannot be written.
    """
    head = {"format": f"cvxqop {what}", "format_version": FORMAT, "cvxqop": _version()}
    body = {name: _plain(value) for name, value in content.items()}
    return json.dumps({**head, **readable, "release": body}, allow_nan=False)


def read(what: str, text: str | bytes) -> dict[str, Any]:
    """The content of a text that `written` made.

    Raises
    ------
    ProblemError
        It is no JSON, of something else, of a later format, or incomplete.
    """
    try:
        whole = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ProblemError("from_json: this is no JSON. Pass the text that to_json made.") from None
    if not isinstance(whole, dict) or whole.get("format") != f"cvxqop {what}":
        raise ProblemError(
            f"from_json: this is not the JSON of a cvxqop.{what}. Pass the text that its to_json "
            "made."
        )
    if whole.get("format_version") != FORMAT:
        raise ProblemError(
            "from_json: this text is of another version of the format "
            f"({whole.get('format_version')!r}, and this library reads {FORMAT}). It was written "
            f"by cvxqop {whole.get('cvxqop')!r}: install that version."
        )
    release = whole.get("release")
    if not isinstance(release, dict):
        raise broken()
    return rebuilt(lambda: {name: _made(value) for name, value in release.items()})


def rebuilt(make: Callable[[], T]) -> T:
    """What ``make`` makes of a text, or one error in the place of all that can be wrong with it."""
    try:
        return make()
    except ProblemError:
        raise
    except Exception:
        raise broken() from None


def broken() -> ProblemError:
    """The text is of this library and has been damaged."""
    return ProblemError(
        "from_json: a field of this release is missing, or of another kind or shape than it "
        "should be. Write it again with to_json."
    )


def matched(
    descriptions: Sequence[Description], variables: Sequence[cp.Variable] | None
) -> list[cp.Variable]:
    """The caller's variables, checked by name, order and shape; new ones where there are none.

    Raises
    ------
    ProblemError
        They are others; the message says which are wanted.
    """
    if variables is None:
        return [description.variable() for description in descriptions]
    given = list(variables) if isinstance(variables, Sequence) else [variables]
    wanted = [(d.name, d.shape) for d in descriptions]
    found = [(v.name(), v.shape) if isinstance(v, cp.Variable) else (v, None) for v in given]
    if found != wanted:
        names = ", ".join(f"cp.Variable({shape}, name={name!r})" for name, shape in wanted)
        raise ProblemError(
            "from_json: variables must be those of the release, by name, order and shape: "
            f"[{names}]. Without them new ones are made."
        )
    return given


def _version() -> str:
    try:
        return version("cvxqop")
    except PackageNotFoundError:
        return "unknown"


def _plain(value: Any) -> Any:
    """Numbers, strings, lists and mappings; a dataclass says which it is."""
    if isinstance(value, np.ndarray):
        return {"array": _plain(value.tolist())}
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else {"number": str(float(value))}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _plain(item) for key, item in value.items()}}
    kind = type(value).__name__
    if KINDS.get(kind) is not type(value):
        raise ProblemError(f"to_json: {kind} cannot be written; use pickle.")
    return {"class": kind, **{f.name: _plain(getattr(value, f.name)) for f in fields(KINDS[kind])}}


def _made(value: Any) -> Any:
    """The reverse; lists become tuples."""
    if isinstance(value, list):
        return tuple(_made(item) for item in value)
    if not isinstance(value, dict):
        return value
    if value.keys() == {"array"}:
        return np.asarray(_made(value["array"]), dtype=np.float64)
    if value.keys() == {"number"}:
        return SPECIAL[value["number"]]
    if value.keys() == {"mapping"}:
        return {key: _made(item) for key, item in value["mapping"].items()}
    held = dict(value)
    kind = KINDS[held.pop("class")]
    if held.keys() != {f.name for f in fields(kind)}:
        raise broken()
    return kind(**{name: _made(item) for name, item in held.items()})
