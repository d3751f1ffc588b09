"""Labels cover nothing, or are left out."""

from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from quietbits.figures.drawing.labels import DirectLabel, place_labels, text_box
from quietbits.figures.drawing.style import print_style


def test_labels_of_close_points_stand_apart_with_leader_lines() -> None:
    with print_style():
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        axes = figure.subplots()
        places = np.linspace(0.485, 0.515, 6)
        axes.plot(places, places, marker="o")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        labels = [DirectLabel(f"a mechanism number {number}", place, place, bold=number == 2) for number, place in enumerate(places)]
        assert place_labels(figure, axes, labels) == []
    boxes = [text_box(text) for text in axes.texts]
    assert len(boxes) == len(labels)
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    points = axes.transData.transform(np.column_stack([places, places]))
    assert [box.count_contains(points) for box in boxes] == [0] * len(boxes)
    far = [text for text in axes.texts if text.arrow_patch is not None]
    assert far
    assert {text.get_color() for text in axes.texts} == {"black"}
    assert [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"] == ["a mechanism number 2"]


def test_a_label_without_a_place_is_left_out_and_returned() -> None:
    with print_style():
        figure = Figure(figsize=(1.0, 1.0), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1])
        label = DirectLabel("a name that is much longer than the axes are wide", 0.5, 0.5)
        assert place_labels(figure, axes, [label]) == [label]
    assert list(axes.texts) == []
