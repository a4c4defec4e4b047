"""Talk to one task at a time through a reference that outlives it."""
