"""Back ends: one module per engine, all with the interface of `protocol`."""
