"""Code that is made from `schema/messages/` in the build.

`hazel_rpc` has the messages of the RPC rings: for each table a reader of that name, which reads in place, and a
plain class of that name and a T, such as `EnvelopeT`. It needs the package `flatbuffers`.
"""
