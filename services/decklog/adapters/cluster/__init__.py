"""The cluster port: a simulated API server, in process or over HTTP, and the real one's client.

`simulated.py` behaves as kube-apiserver does, with a kubelet and a volume binder that are
stepped. `serve.py` offers it under the Kubernetes paths. `http.py` speaks to any API server
and is the only user of urllib3. Imported by bootstrap and simulation; no service knows it.
"""
