"""Second, differently written correct answers to chapter 03's exercises."""


def arithmetic_intensity(m, n, k, bytes_per_element):
    elements = sum([m * k, k * n, n * m])
    return (m * n) * (k + k) / elements / bytes_per_element
