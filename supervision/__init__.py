"""Keep async functions alive: children, strategies, restart intensity, events, a tree to look at."""
