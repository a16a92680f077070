"""Real servers for the demo and the tests, started from jars: they stop with the process that started them."""
