"""Run JavaScript cells in leased sessions and serve them over gRPC."""

__all__: list[str] = []
