"""The same three questions asked of other actor systems, each in an environment of its own."""
