"""One part of a run each: a function of the bench that measures, and a line that says what."""
