"""Run code in sessions that survive the loss of the host that serves them."""
