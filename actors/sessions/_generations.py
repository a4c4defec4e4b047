"""Name cells so that a name never means a cell of another generation.

Generation 1 passes the host's ids through; later ones mark them.
"""


def public_cell_id(generation: int, host_cell_id: str) -> str:
    """Name a host's cell for the holder of the session."""
    return host_cell_id if generation == 1 else f"g{generation}:{host_cell_id}"


def host_cell_id(generation: int, cell_id: str) -> str | None:
    """Find the host's own id of a cell, or None when the id is of another generation.

    Generation 1 has no mark of its own, so there any id is the host's to judge.
    """
    if generation == 1:
        return cell_id
    mark = f"g{generation}:"
    return cell_id.removeprefix(mark) if cell_id.startswith(mark) else None
