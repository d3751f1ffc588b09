"""A real column of items that ships inside a dependency: the words of scikit-learn's descriptions of its data sets."""

import re
from importlib.resources import files

from .item_column import ItemColumn, hashed_items

WORD = re.compile(r"[a-z]+")
BUCKETS = 2**14


def description_words(buckets: int = BUCKETS) -> ItemColumn:
    """Return the words of the texts ``sklearn/datasets/descr/*.rst``, in lower case, one client for each word.

    What words there are is not public: words are hashed into public buckets, so that the guarantee covers everything.

    Parameters
    ----------
    buckets : int
        Number of buckets, from 2.

    Examples
    --------
    >>> import numpy as np
    >>> column = description_words()
    >>> len(column.items) > 5000, column.categories, column.names[int(np.bincount(column.items).argmax())]
    (True, 16384, 'the')
    """
    texts = sorted(entry.read_text(encoding="utf-8") for entry in files("sklearn.datasets.descr").iterdir() if entry.name.endswith(".rst"))
    words = [word for text in texts for word in WORD.findall(text.lower())]
    return hashed_items(words, buckets, "words", "sklearn/datasets/descr")
