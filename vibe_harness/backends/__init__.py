"""One module an engine, behind one small protocol: requests in, responses out as they come."""
