"""The UCI digits that scikit-learn carries, as train.py and quantize.py share them."""
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images f32[n, 1, 8, 8] in [0, 1] to train on and to test with, then their labels; a fifth is for tests."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    return tuple(train_test_split(images, labels.astype(np.uint8), test_size=0.2, stratify=labels, random_state=SEED))
