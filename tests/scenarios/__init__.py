"""Golden timelines that a person can check by hand; `timeline.py` reads them."""
