"""Random deformations, which turn a few small images into any number of images.

An image is rotated, scaled, shifted, and bent by a smooth field. Infinite MNIST (Loosli, Canu, Bottou 2007, *Training invariant support
vector machines using selective sampling*) does the same with larger digits.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...arguments import check_real
from ...arrays import FloatArray

# The smooth field has KNOTS knots along each side; between them the field is a product of quadratic B-splines, whose overlap makes it
# smooth.
KNOTS = 4
NUMBERS = 4 + 2 * KNOTS**2
# Side, in pixels, of the images for which the usual deformation is meant.
USUAL_SIDE = 8


@dataclass(frozen=True)
class Deformation:
    """Largest deformation of an image in either direction.

    Attributes
    ----------
    degrees : float
        Largest rotation about the centre in degrees, up to 180.
    scale : float
        Largest relative change of size, up to 0.5.
    shift : float
        Largest shift in pixels along each side, up to 8.
    bend : float
        Largest displacement of a knot of the smooth field along each side, in pixels, up to 8.
    """

    degrees: float = 12.0
    scale: float = 0.1
    shift: float = 0.6
    bend: float = 0.8

    @classmethod
    def of_side(cls, side: int) -> "Deformation":
        """Return the usual deformation of 8-pixel digits, in proportion to another side."""
        usual = cls()
        return replace(usual, shift=usual.shift * side / USUAL_SIDE, bend=usual.bend * side / USUAL_SIDE)

    def __post_init__(self) -> None:
        """Check the ranges of the fields."""
        check_real("degrees", self.degrees, low=0.0, high=180.0)
        check_real("scale", self.scale, low=0.0, high=0.5)
        check_real("shift", self.shift, low=0.0, high=8.0)
        check_real("bend", self.bend, low=0.0, high=8.0)


def deformed(images: FloatArray, uniforms: FloatArray, deformation: Deformation) -> FloatArray:
    """Return each image deformed by its own row of `NUMBERS` uniform numbers.

    Images have the shape (n, height, width), and uniforms the shape (n, NUMBERS). An image is 0 outside its frame. An image's result does
    not depend on other images, as sums add terms in a fixed order.
    """
    count, height, width = images.shape
    signed = 2 * uniforms - 1
    angle = np.deg2rad(deformation.degrees) * signed[:, 0, None, None]
    scale = 1 + deformation.scale * signed[:, 1, None, None]
    down, right = (np.arange(side) - (side - 1) / 2 for side in (height, width))
    cosine, sine = np.cos(angle) / scale, np.sin(angle) / scale
    rows = cosine * down[:, None] - sine * right[None, :] + (height - 1) / 2 + deformation.shift * signed[:, 2, None, None]
    columns = sine * down[:, None] + cosine * right[None, :] + (width - 1) / 2 + deformation.shift * signed[:, 3, None, None]
    fields = deformation.bend * signed[:, 4:].reshape(count, 2, KNOTS, KNOTS)
    rows += _smooth(fields[:, 0], height, width)
    columns += _smooth(fields[:, 1], height, width)
    return _interpolated(images, rows, columns)


def _smooth(knots: FloatArray, height: int, width: int) -> FloatArray:
    """Return the field at every pixel from its knots, shape (n, height, width)."""
    down, right = _spline(height), _spline(width)
    lines = np.zeros((len(knots), height, KNOTS))
    field = np.zeros((len(knots), height, width))
    for knot in range(KNOTS):
        lines += knots[:, knot, None, :] * down[knot, :, None]
    for knot in range(KNOTS):
        field += lines[:, :, knot, None] * right[knot]
    return field


def _spline(side: int) -> FloatArray:
    """Return the weight of every knot at every pixel, shape (KNOTS, side)."""
    places = (np.arange(side) + 0.5) / side * (KNOTS - 2) + 0.5
    away = np.abs(places - np.arange(KNOTS)[:, None])
    return np.where(away <= 0.5, 0.75 - away**2, np.where(away <= 1.5, (1.5 - away) ** 2 / 2, 0.0))


def _interpolated(images: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the images' values between pixels, by linear interpolation along each side."""
    count, height, width = images.shape
    # The frame of zeros has one pixel before and two after the image, for the neighbours of places outside.
    framed, stride = np.pad(images, ((0, 0), (1, 2), (1, 2))).reshape(count, -1), width + 3
    rows, columns = np.clip(rows + 1, 0, height + 1), np.clip(columns + 1, 0, width + 1)
    above, left = rows.astype(np.int64), columns.astype(np.int64)
    lower, righter = rows - above, columns - left
    corner = (above * stride + left).reshape(count, -1)

    def value(offset: int) -> FloatArray:
        return np.take_along_axis(framed, corner + offset, axis=1).reshape(count, height, width)

    upper = (1 - righter) * value(0) + righter * value(1)
    below = (1 - righter) * value(stride) + righter * value(stride + 1)
    return (1 - lower) * upper + lower * below
