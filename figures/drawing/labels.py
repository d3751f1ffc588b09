"""Direct labels of points, placed where they cover no point, no line and no other label."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from .style import solve_layout

# Distances of a label from its point that are tried, in points of type.
DISTANCES = (5.0, 9.0, 13.0, 20.0, 30.0, 42.0, 56.0, 72.0, 90.0, 110.0, 135.0, 165.0, 200.0)
# Directions that are tried, as unit vectors: to the right, top, left and bottom first, then between these.
TURNS = (0, 6, 12, 18, 3, 9, 15, 21, *(turn for turn in range(24) if turn % 3))
DIRECTIONS = tuple((math.cos(math.pi * turn / 12), math.sin(math.pi * turn / 12)) for turn in TURNS)
# Labels farther away than this have a leader line to their point, which is slanted, unlike the steps and references in a figure.
LEADER_FROM = 14.0
SLANTED = DIRECTIONS[4:]
# Distance that a leader line keeps from other points' markers, in points of type.
CLEARANCE = 4.0
LEADER_LINE: Mapping[str, Any] = MappingProxyType({"arrowstyle": "-", "color": "#555555", "linewidth": 0.6, "shrinkA": 1.0, "shrinkB": 3.0})
# Distance between points that stand for a line, and the margin around a label, in points of type.
LINE_STEP, MARGIN = 2.0, 2.0
POINTS_OF_INCH = 72.0
# Matplotlib's names of no marker and no line.
NOTHING = (None, "", " ", "None", "none")


@dataclass(frozen=True)
class DirectLabel:
    """A text that names the point of the axes' data coordinates."""

    text: str
    x: float
    y: float
    bold: bool = False

    @property
    def weight(self) -> str:
        """Weight of the font."""
        return "bold" if self.bold else "normal"


@dataclass(frozen=True)
class _Place:
    """A place of a label: the centre of its text and half its size, its point, and the distance from it, in pixels."""

    centre: NDArray[np.float64]
    half: NDArray[np.float64]
    point: NDArray[np.float64]
    distance: float
    far: bool

    @property
    def leader(self) -> NDArray[np.float64]:
        """Points along the leader line, none for a label close to its point."""
        return _along(np.array([self.point, self.centre])) if self.far else np.empty((0, 2))


@dataclass(frozen=True)
class _Drawn:
    """Obstacles for labels in the axes: points on lines and markers, centres of markers, boxes of texts, and placed labels."""

    solid: NDArray[np.float64]
    centres: NDArray[np.float64]
    boxes: tuple[Bbox, ...]
    placed: tuple[_Place, ...]
    area: Bbox
    scale: float

    def added(self, place: _Place) -> "_Drawn":
        """Return everything that is drawn with another label."""
        box = Bbox([place.centre - place.half, place.centre + place.half])
        solid = np.concatenate([self.solid, place.leader])
        return replace(self, solid=solid, boxes=(*self.boxes, box), placed=(*self.placed, place))

    def allows(self, place: _Place, *, crossing: bool) -> bool:
        """Return whether a label covers nothing there; `crossing` allows its leader line to cross other leader lines and markers."""
        margin = place.half + MARGIN * self.scale
        low, high = place.centre - margin, place.centre + margin
        return bool(
            (low >= self.area.min).all()
            and (high <= self.area.max).all()
            and not _inside(self.solid, low, high)
            and not any((low < box.max).all() and (high > box.min).all() for box in self.boxes)
            and not any(_inside(place.leader, np.asarray(box.min), np.asarray(box.max)) for box in self.boxes)
            and (crossing or not place.far or not self._crossed(place))
        )

    def _crossed(self, place: _Place) -> bool:
        others = self.centres[np.linalg.norm(self.centres - place.point, axis=1) > CLEARANCE * self.scale]
        leader = place.leader[:, None, :]
        near = bool((np.linalg.norm(leader - others[None], axis=2) < CLEARANCE * self.scale).any())
        return near or any(_cross(place, other) for other in self.placed if other.far)


def place_labels(figure: Figure, axes: Axes, labels: Sequence[DirectLabel]) -> list[DirectLabel]:
    """Write labels beside their points in black, with leader lines to those that do not fit close by.

    The layout of the figure must not change afterwards. A label covers no line, point, or other label, and lies within the axes. The
    function returns the labels without such a place, which it does not write.
    """
    solve_layout(figure)
    scale = figure.dpi / POINTS_OF_INCH
    solid, centres = _obstacles(axes)
    drawn = _Drawn(solid, centres, tuple(text_box(text) for text in axes.texts), (), axes.get_window_extent(), scale)
    remaining = [(label, _half_size(axes, label)) for label in labels]
    for crossing in (False, True):
        # The label with the closest place comes first, as it would not find another place so close.
        while places := [
            (place, label)
            for label, half in remaining
            if (place := _closest_place(axes.transData.transform((label.x, label.y)), half, drawn, crossing=crossing)) is not None
        ]:
            place, label = min(places, key=lambda pair: pair[0].distance)
            _write(axes, label, place, scale)
            drawn = drawn.added(place)
            remaining = [pair for pair in remaining if pair[0] is not label]
    return [label for label, _ in remaining]


def _half_size(axes: Axes, label: DirectLabel) -> NDArray[np.float64]:
    text = axes.text(0.0, 0.0, label.text, fontweight=label.weight)
    size = np.asarray(text_box(text).size)
    text.remove()
    return size / 2


def _write(axes: Axes, label: DirectLabel, place: _Place, scale: float) -> None:
    offset = (place.centre - place.point) / scale
    arrow = dict(LEADER_LINE) if place.far else None
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "color": "black", "fontweight": label.weight}
    axes.annotate(label.text, (label.x, label.y), tuple(offset), arrowprops=arrow, **style)


def _closest_place(point: NDArray[np.float64], half: NDArray[np.float64], drawn: _Drawn, *, crossing: bool) -> _Place | None:
    """Return the closest place where a label of a half size covers nothing, or None."""
    for distance in DISTANCES:
        far = distance > LEADER_FROM
        for direction in SLANTED if far else DIRECTIONS:
            centre = point + np.array(direction) * (distance * drawn.scale + half)
            place = _Place(centre, half, point, distance, far)
            if drawn.allows(place, crossing=crossing):
                return place
    return None


def _cross(first: _Place, second: _Place) -> bool:
    """Return whether two leader lines cross."""

    def side(line: _Place, point: NDArray[np.float64]) -> float:
        (left, bottom), (right, top) = line.centre - line.point, point - line.point
        return float(np.sign(left * top - bottom * right))

    between = side(first, second.point) != side(first, second.centre)
    return between and side(second, first.point) != side(second, first.centre)


def _inside(points: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Return whether some point lies in a box."""
    return bool(((points > low) & (points < high)).all(axis=1).any())


def text_box(text: Text) -> Bbox:
    """Return the extent of a text in pixels, without the leader line of a label."""
    # A label's position is computed with that of its leader line.
    text.get_window_extent()
    return Text.get_window_extent(text)


def _obstacles(axes: Axes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pixels of all drawn points, with points along all drawn lines, and the centres of markers."""
    solid, centres = [np.empty((0, 2))], [np.empty((0, 2))]
    for line in axes.lines:
        pixels = np.asarray(line.get_transform().transform(np.column_stack(line.get_data(orig=False)).astype(float)))
        if line.get_linestyle() not in NOTHING:
            steps: Any = STEP_LOOKUP_MAP[line.get_drawstyle()]
            solid.append(_along(np.column_stack(steps(*pixels.T))))
        if line.get_marker() not in NOTHING:
            figure: Any = line.get_figure(root=True)
            solid.append(_around(pixels, line.get_markersize() / 2 * figure.dpi / POINTS_OF_INCH))
            centres.append(pixels)
    for points in axes.collections:
        if isinstance(points, PathCollection):
            pixels = np.asarray(points.get_offset_transform().transform(points.get_offsets()))
            solid.append(pixels)
            centres.append(pixels)
    return _finite(np.concatenate(solid)), _finite(np.concatenate(centres))


def _finite(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return points[np.isfinite(points).all(axis=1)]


def _around(centres: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return the centres and points on circles around them."""
    angles = 2 * np.pi * np.arange(8) / 8
    circle = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return np.concatenate([centres, (centres[:, None, :] + circle[None]).reshape(-1, 2)])


def _along(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points along a polygon's sides."""
    sides = []
    for start, end in pairwise(_finite(corners)):
        count = max(2, int(np.linalg.norm(end - start) / LINE_STEP) + 1)
        sides.append(start + np.linspace(0.0, 1.0, count)[:, None] * (end - start))
    return np.concatenate(sides) if sides else np.empty((0, 2))
