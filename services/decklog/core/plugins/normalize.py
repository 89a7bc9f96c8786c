"""Kube-scheduler's default way of bringing raw scores into 0 … 100."""

import numpy as np

from decklog.core.framework.interface import SCORE_MAX, Scores


def normalized(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale so that the highest raw score becomes 100; reverse: 0, and the lowest the best."""
    highest = int(scores.max()) if len(scores) else 0
    if highest <= 0:
        return np.full_like(scores, SCORE_MAX) if reverse else scores.copy()
    scaled = scores * SCORE_MAX // highest
    return SCORE_MAX - scaled if reverse else scaled
