def compares_width(B, D, F, X, flops, bandwidth):
    """choose: choose_by_width"""
    return 1 if flops / bandwidth <= F else 2


def compares_batch(B, D, F, X, flops, bandwidth):
    """choose: choose_by_threshold"""
    return 2 if flops / bandwidth > B else 1


def fewer_bytes(B, D, F, X, flops, bandwidth):
    """choose: choose_by_bytes"""
    weights, activations = 2 * D * F, 2 * 2 * B * F
    return 1 if weights <= activations else 2
