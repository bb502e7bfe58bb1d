def total(a, *, mesh):
    raise ValueError("<script>alert(1)</script> [x](javascript:y) {{ 7 * 7 }} {% raw %} ![](http://x)")


megabytes = "<img src=x onerror=alert(1)>"
