def all_examples(B, X, Y):
    """looped_latency: looped_latency_of_whole_batch"""
    return B * 2 * (X // 2) * 1e-6


def one_phase(B, X, Y):
    """looped_latency: looped_latency_of_gathers"""
    return B / Y * (X // 2) * 1e-6


def one_way_hops(B, X, Y):
    """looped_latency: looped_latency_one_way"""
    return B / Y * 2 * (X - 1) * 1e-6


def over_y(B, X, Y):
    """looped_latency: looped_latency_over_y"""
    return B / X * 2 * (Y // 2) * 1e-6
