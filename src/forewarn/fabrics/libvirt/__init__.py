"""The fabric of real machines: libvirt's domains, on one host or several.

Law: `link` is the only module that imports libvirt, and the only one that waits for it. `begin`,
`observe` and `census` answer from memory and from the fabric's own files; whatever takes time is
done by threads that whoever owns the fabric starts.

Theory: an order is a docket, a small file that names the steps still to be taken. Each step looks
at the domain first and does only what is missing, and is struck off once it is done. So it does not
matter who died in between: the next look finds either the step undone, or its traces.
"""
