"""Checks proofs of KKT points with Arb balls, from data alone; shares nothing with the program.

One case per line of a file: {"x": rows, "y": labels, "slope": alpha, "width": units, "factor": [numerator, denominator], "proof": the proof}.
Cases of dense networks have also "widths", "power", "trained" (one per matrix), and class numbers as labels if "classes" is above 1.
One answer per line: {"holds": bool, "why": text, "margin": [lo, hi], "kind": text}.
"""
import json
import sys

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

ctx.prec = 160


class No(Exception):
    pass


def need(condition, why):
    if not condition:
        raise No(why)


def ball(x, r=0.0):
    need(x == x and abs(x) != float("inf") and r == r and r != float("inf"), "not finite")
    return arb(float(x), float(r)) if r else arb(float(x))


def krawczyk(proof, residual, jacobian):
    """K(X) if it lies inside X."""
    n = len(proof["midpoint"])
    need(len(proof["radius"]) == n and len(proof["inverse"]) == n * n and n > 0, "shape")
    need(all(r > 0 for r in proof["radius"]), "a radius is not positive")
    c = arb_mat(n, n, [ball(v) for v in proof["inverse"]])
    x = [ball(v) for v in proof["midpoint"]]
    radii = [arb(float(r)) for r in proof["radius"]]
    whole = [m + arb(0, float(r)) for m, r in zip(x, proof["radius"])]
    f, j = residual(x), jacobian(whole)
    need(len(f) == n and len(j) == n and all(len(line) == n for line in j), "not square")
    one = arb_mat([[1 if i == k else 0 for k in range(n)] for i in range(n)])
    e = one - c * arb_mat(j)
    step = c * arb_mat([[v] for v in f])
    image = []
    for i in range(n):
        spread = sum((abs(e[i, k]).upper() * radii[k] for k in range(n)), arb(0))
        shift = abs(step[i, 0]).upper() + spread
        need(shift.upper() < radii[i], f"unknown {i} is not mapped into the box")
        image.append(x[i] - step[i, 0] + arb(0, 1) * spread.upper())
    return image


def dot(u, x):
    return sum((a * b for a, b in zip(u, x)), arb(0))


def phi(z, slope):
    if z >= 0:
        return z
    if z <= 0:
        return z * slope
    lo, hi = z.lower(), z.upper()
    return (lo * slope).union(hi)


class Problem:
    def __init__(self, case):
        self.x = [[ball(v) for v in row] for row in case["x"]]
        self.raw, self.y, self.slope, self.width = case["x"], [int(v) for v in case["y"]], ball(case["slope"]), case["width"]
        self.active = case["proof"]["active"]
        n = len(self.x)
        need(self.active and self.active == sorted(set(self.active)) and 0 <= self.active[0] and self.active[-1] < n, "active set")
        self.rows = [[v * self.y[i] for v in self.x[i]] for i in self.active]
        self.gram = arb_mat(self.rows) * arb_mat(self.rows).transpose()

    def sides_and_margins(self, pieces, margin):
        """pieces: (sign, gain, direction, sides)."""
        for sign, gain, direction, sides in pieces:
            for letter, i in zip(sides, self.active):
                z = dot(direction, self.x[i])
                fine = {"+": z > 0, "-": z < 0, "0": z.contains(0)}[letter]
                need(fine, f"side of example {i}")
        for i in range(len(self.x)):
            if any(self.raw[i] == self.raw[k] and self.y[i] == self.y[k] for k in self.active):
                continue
            f = sum((gain * phi(dot(direction, self.x[i]), self.slope) * sign for sign, gain, direction, _ in pieces), arb(0))
            need(f * self.y[i] > margin, f"margin of example {i}")

    def units(self, lists):
        flat = [u for units in lists for u in units]
        need(len(set(flat)) == len(flat) and all(0 <= u < self.width for u in flat), "hidden units")
        return set(flat)


def round_point(p, proof, bundles):
    m = len(p.active)
    for b in bundles:
        need(len(b["sides"]) == m and set(b["sides"]) <= set("+-0") and b["sign"] in (1, -1), "bundle")
        need(b["units"] and len(b["units"]) == len(b["shares"]) and all(s > 0 for s in b["shares"]), "shares")
    live = p.units([b["units"] for b in bundles])
    flip = {"+": "-", "-": "+", "0": "0"}
    for c, b in enumerate(bundles):
        e = b.get("opposite")
        if e is not None:
            o = bundles[e]
            need(0 <= e < c and o.get("opposite") is None and o["sign"] == b["sign"] and p.slope == 0, "opposite")
            need([flip[s] for s in o["sides"]] == list(b["sides"]), "opposite sides")
    kinks = [(c, i) for c, b in enumerate(bundles) if b.get("opposite") is None for i in range(m) if b["sides"][i] == "0"]
    place = {k: m + t for t, k in enumerate(kinks)}
    o, masses = m + len(kinks), {}
    for c, b in enumerate(bundles):
        if b.get("mass") is None:
            masses[c] = o
            o += 1
    need(o == len(proof["midpoint"]), "unknowns")
    balanced = any(b.get("opposite") is not None for b in bundles)

    def parts(c, i):
        s, e = bundles[c]["sides"][i], bundles[c].get("opposite")
        if s == "+":
            return [(i, arb(1))]
        if s == "-":
            return [(i, p.slope)]
        return [(place[c, i], arb(1))] if e is None else [(i, arb(1)), (place[e, i], arb(-1))]

    made = [[parts(c, i) for i in range(m)] for c in range(len(bundles))]
    rows = arb_mat(p.rows)

    def vectors(z):
        nu = arb_mat([[sum((z[u] * x for u, x in made[c][i]), arb(0)) for i in range(m)] for c in range(len(bundles))])
        v = nu * rows
        return v, v * rows.transpose()

    def gain(c, i):
        return {"+": arb(1), "-": p.slope, "0": arb(0)}[bundles[c]["sides"][i]]

    def mass(z, c):
        return z[masses[c]] if c in masses else ball(bundles[c]["mass"])

    d = len(p.rows[0])

    def residual(z):
        v, q = vectors(z)
        out = [(sum((v[c, k] ** 2 for k in range(d)), arb(0)) - 1) / 2 for c, b in enumerate(bundles) if b.get("opposite") is None]
        out += [q[c, i] for c, i in kinks]
        if balanced:
            out += [sum((z[i] * p.rows[i][k] for i in range(m)), arb(0)) for k in range(d)]
        return out + [sum((mass(z, c) * q[c, i] * gain(c, i) for c in range(len(bundles))), arb(0)) - 1 for i in range(m)]

    def jacobian(z):
        _, q = vectors(z)
        n, out = len(proof["midpoint"]), []
        for c, b in enumerate(bundles):
            if b.get("opposite") is None:
                line = [arb(0)] * n
                for i in range(m):
                    for u, x in made[c][i]:
                        line[u] += q[c, i] * x
                out.append(line)
        for c, i in kinks:
            line = [arb(0)] * n
            for k in range(m):
                for u, x in made[c][k]:
                    line[u] += p.gram[i, k] * x
            out.append(line)
        if balanced:
            out += [[p.rows[i][k] if i < m else arb(0) for i in range(n)] for k in range(d)]
        for i in range(m):
            line = [arb(0)] * n
            for c in range(len(bundles)):
                if bundles[c]["sides"][i] == "0":
                    continue
                w = mass(z, c) * gain(c, i)
                for k in range(m):
                    for u, x in made[c][k]:
                        line[u] += w * p.gram[i, k] * x
                if c in masses:
                    line[masses[c]] += q[c, i] * gain(c, i)
            out.append(line)
        return out

    z = krawczyk(proof, residual, jacobian)
    lam = z[:m]
    need(all(v > 0 for v in lam), "multipliers")
    need(all(z[place[c, i]] > p.slope * lam[i] and z[place[c, i]] < lam[i] for c, i in kinks), "slopes")
    b = [mass(z, c) for c in range(len(bundles))]
    need(all(v > 0 for v in b), "masses")
    v, _ = vectors(z)
    pieces = [(q["sign"], b[c], [v[c, k] * q["sign"] for k in range(d)], q["sides"]) for c, q in enumerate(bundles)]
    p.sides_and_margins(pieces, arb(1))
    return 1 / (2 * sum(b, arb(0))), kind(p, proof, bundles, lam, live, balanced, v)


def kind(p, proof, bundles, lam, live, balanced, v):
    y = [p.y[i] for i in p.active]
    if any(s == "0" and y[i] == b["sign"] for b in bundles for i, s in enumerate(b["sides"])):
        return "not-local-maximum"
    cover, most, d = proof.get("sphere"), None, len(p.rows[0])
    if cover:
        need(sorted(cover["order"]) == list(range(len(y))), "order")
        # with d opposite pairs in general position sum lambda y x = 0, and h is even
        even = balanced or vanishing(p, bundles, lam, v)
        most = arb(1)
        for sign, leaves in ((1, cover["positive"]), (-1, cover["negative"])):
            own = [i for i in cover["order"] if y[i] == sign]
            others = [i for i in range(len(y)) if y[i] != sign]
            need(sum(fmpq(1, 2 ** len(leaf["path"])) for leaf in leaves) == 1, "paths do not add up")
            paths = sorted(leaf["path"] for leaf in leaves)
            need(not any(b.startswith(a) for a, b in zip(paths, paths[1:])), "paths overlap")
            known = [[b["sides"][i] for i in own] for b in bundles if b["sign"] == sign]
            exact = {"".join("1" if s == "+" else "0" for s in k) for k in known if "0" not in k}
            if even:
                exact |= {"".join("0" if s == "1" else "1" for s in k) for k in exact}
            for leaf in leaves:
                path = leaf["path"]
                need(set(path) <= set("01") and len(path) <= len(own) and len(leaf["slopes"]) == len(others), "leaf")
                need(all(0 <= s <= 1 for s in leaf["slopes"]), "slopes of a leaf")
                if len(path) == len(own) and path in exact:
                    continue
                g = [arb(0)] * d
                for k, i in enumerate(own):
                    s = arb(int(path[k])) if k < len(path) else arb(1) / 2
                    g = [a + lam[i] * (p.slope + (1 - p.slope) * s) * x for a, x in zip(g, p.x[p.active[i]])]
                for i, s in zip(others, leaf["slopes"]):
                    g = [a - lam[i] * (p.slope + (1 - p.slope) * ball(s)) * x for a, x in zip(g, p.x[p.active[i]])]
                bound = sum((a * a for a in g), arb(0)).sqrt()
                rest = own[len(path):]
                if rest:
                    a = arb_mat([[sum((lam[i] * p.x[p.active[i]][k] * p.x[p.active[i]][l] for i in rest), arb(0)) for l in range(d)] for k in range(d)])
                    a = a * a
                    a = a * a
                    size = sum((a[k, l] ** 2 for k in range(d) for l in range(d)), arb(0)).sqrt().sqrt().sqrt()
                    bound += (1 - p.slope) * (sum((lam[i] for i in rest), arb(0)) * size).sqrt() / 2
                most = most if bound <= most else bound.max(most)
        if most <= 1:
            return "global-maximum"
    witness = cover.get("witness") if cover else None
    if witness:
        u = [ball(t) for t in witness["direction"]]
        h = sum((lam[i] * y[i] * phi(dot(u, p.x[p.active[i]]), p.slope) for i in range(len(y))), arb(0)) * witness["sign"]
        need(h > sum((t * t for t in u), arb(0)).sqrt(), "the direction raises nothing")
    if len(live) == p.width:
        return "local-maximum"
    return "not-local-maximum" if witness else "undecided"


def vanishing(p, bundles, lam, v):
    d = len(p.rows[0])
    if d > 4:
        return False
    t = [sum((l * row[k] for l, row in zip(lam, p.rows)), arb(0)) for k in range(d)]
    flip, lines = {"+": "-", "-": "+"}, []
    for c, b in enumerate(bundles):
        for e in range(c):
            o = bundles[e]
            if b["sign"] == o["sign"] and "0" not in b["sides"] and [flip.get(s) for s in o["sides"]] == list(b["sides"]):
                lines.append([t[k] - 2 * v[e, k] for k in range(d)])
    from itertools import combinations
    return p.slope == 0 and any(not arb_mat(list(some)).det().contains(0) for some in combinations(lines, d))


def diamond_point(p, proof, bundles):
    m, d = len(p.active), len(p.rows[0])
    for b in bundles:
        need(len(b["sides"]) == m and set(b["sides"]) <= set("+-0") and b["sign"] in (1, -1) and b["units"], "bundle")
        need(len(b["support"]) == d and set(b["support"]) <= set("+-0"), "support")
    p.units([b["units"] for b in bundles])
    kinks = [(c, i) for c, b in enumerate(bundles) for i in range(m) if b["sides"][i] == "0"]
    slope = {k: m + t for t, k in enumerate(kinks)}
    outer = m + len(kinks)
    support = [(c, k) for c, b in enumerate(bundles) for k in range(d) if b["support"][k] != "0"]
    weight = {s: outer + len(bundles) + t for t, s in enumerate(support)}
    need(outer + len(bundles) + len(support) == len(proof["midpoint"]), "unknowns")
    sign = {"+": 1, "-": -1, "0": 0}
    n = len(proof["midpoint"])

    def parts(c):
        out = []
        for i, s in enumerate(bundles[c]["sides"]):
            out.append((slope[c, i], arb(1)) if s == "0" else (i, arb(1) if s == "+" else p.slope))
        return out

    made = [parts(c) for c in range(len(bundles))]

    def force(z, c, k):
        return sum((z[u] * x * p.rows[i][k] for i, (u, x) in enumerate(made[c])), arb(0))

    def product(z, c, i):
        return sum((z[weight[c, k]] * p.rows[i][k] for k in range(d) if (c, k) in weight), arb(0))

    def gain(c, i):
        return {"+": arb(1), "-": p.slope, "0": arb(0)}[bundles[c]["sides"][i]]

    def residual(z):
        out = [z[outer + c] * force(z, c, k) * bundles[c]["sign"] - sign[bundles[c]["support"][k]] for c, k in support]
        for c, b in enumerate(bundles):
            out.append(sum((z[weight[c, k]] * sign[b["support"][k]] for k in range(d) if (c, k) in weight), arb(0)) - len(b["units"]) * z[outer + c])
        out += [product(z, c, i) for c, i in kinks]
        for i in range(m):
            out.append(sum((z[outer + c] * product(z, c, i) * gain(c, i) * b["sign"] for c, b in enumerate(bundles)), arb(0)) - 1)
        return out

    def jacobian(z):
        out = []
        for c, k in support:
            line = [arb(0)] * n
            for i, (u, x) in enumerate(made[c]):
                line[u] += z[outer + c] * x * p.rows[i][k] * bundles[c]["sign"]
            line[outer + c] += force(z, c, k) * bundles[c]["sign"]
            out.append(line)
        for c, b in enumerate(bundles):
            line = [arb(0)] * n
            line[outer + c] = arb(-len(b["units"]))
            for k in range(d):
                if (c, k) in weight:
                    line[weight[c, k]] = arb(sign[b["support"][k]])
            out.append(line)
        for c, i in kinks:
            line = [arb(0)] * n
            for k in range(d):
                if (c, k) in weight:
                    line[weight[c, k]] = p.rows[i][k]
            out.append(line)
        for i in range(m):
            line = [arb(0)] * n
            for c, b in enumerate(bundles):
                g = gain(c, i) * b["sign"]
                line[outer + c] = product(z, c, i) * g
                for k in range(d):
                    if (c, k) in weight:
                        line[weight[c, k]] = z[outer + c] * p.rows[i][k] * g
            out.append(line)
        return out

    z = krawczyk(proof, residual, jacobian)
    need(all(v > 0 for v in z[:m]), "multipliers")
    need(all(z[slope[c, i]] > p.slope * z[i] and z[slope[c, i]] < z[i] for c, i in kinks), "slopes")
    pieces = []
    for c, b in enumerate(bundles):
        need(z[outer + c] > 0, "outer weight")
        w = [z[weight[c, k]] if (c, k) in weight else arb(0) for k in range(d)]
        for k in range(d):
            s = sign[b["support"][k]]
            need(w[k] * s > 0 if s else abs(z[outer + c] * force(z, c, k)) < 1, "support")
        pieces.append((b["sign"], z[outer + c], w, b["sides"]))
    p.sides_and_margins(pieces, arb(1))
    return 1 / sum((2 * len(b["units"]) * z[outer + c] for c, b in enumerate(bundles)), arb(0)) ** 2, "undecided"


def whole(x):
    return fmpq(*float(x).as_integer_ratio())


def rank(rows):
    return fmpq_mat([[fmpq(v) for v in row] for row in rows]).rank()


def cube_point(p, proof, cube):
    need(p.slope == 0, "ReLU only")
    m, d, neurons = len(p.active), len(p.rows[0]), cube["neurons"]
    p.units([[n["unit"]] for n in neurons])
    classes = {}
    for j, n in enumerate(neurons):
        need(len(n["sides"]) == m and set(n["sides"]) <= set("+-0") and len(n["inner"]) == d, "neuron")
        need(all(abs(w) <= 1 for w in n["inner"] + [n["outer"]]), "bound")
        if n["class"] is None:
            need(set(n["sides"]) == {"-"}, "a neuron without class")
        else:
            need(set(n["sides"]) != {"-"} and abs(n["outer"]) == 1, "a neuron of a class")
            classes.setdefault(n["class"], []).append(j)
    need(sorted(classes) == list(range(len(classes))), "classes")
    bound = lambda n: [w if abs(w) == 1 else 0 for w in [n["outer"]] + n["inner"]]
    for members in classes.values():
        first = neurons[members[0]]
        for j in members:
            need(neurons[j]["sides"] == first["sides"], "sides of a class")
            need("0" not in first["sides"] or bound(neurons[j]) == bound(first), "a class with kinks")
    side = lambda s, i: neurons[classes[s][0]]["sides"][i]
    kinks = [(s, i) for s in range(len(classes)) for i in range(m) if side(s, i) == "0"]
    fixed = [tuple(c) for c in cube["corrected"]]
    need(len(set(fixed)) == len(fixed) and all(0 <= s < len(classes) and 0 <= k < d for s, k in fixed), "corrected")
    first, n = m + len(kinks), len(proof["midpoint"])
    need(first + len(fixed) + 1 == n, "unknowns")

    def pushes(s, k):
        return [(i, p.rows[i][k]) for i in range(m) if side(s, i) == "+"] + [(m + t, p.rows[i][k]) for t, (c, i) in enumerate(kinks) if c == s]

    def moved(s, i):
        return [(first + t, p.rows[i][k]) for t, (c, k) in enumerate(fixed) if c == s]

    def given(s, i):
        return sum((ball(neurons[j]["outer"]) * dot([ball(w) for w in neurons[j]["inner"]], p.rows[i]) for j in classes[s]), arb(0))

    lines = [(pushes(s, k), arb(0)) for s, k in fixed] + [([(i, arb(1)) for i in range(m)], arb(-1))]
    for i in range(m):
        on = [s for s in range(len(classes)) if side(s, i) == "+"]
        lines.append((sum((moved(s, i) for s in on), []) + [(n - 1, arb(-1))], sum((given(s, i) for s in on), arb(0))))
    lines += [(moved(s, i), given(s, i)) for s, i in kinks]

    def residual(z):
        return [sum((z[u] * x for u, x in line), constant) for line, constant in lines]

    def jacobian(_):
        out = []
        for line, _ in lines:
            dense = [arb(0)] * n
            for u, x in line:
                dense[u] += x
            out.append(dense)
        return out

    z = krawczyk(proof, residual, jacobian)
    need(all(v > 0 for v in z[:m]), "multipliers")
    need(all(z[m + t] > 0 and z[m + t] < z[i] for t, (s, i) in enumerate(kinks)), "slopes")
    pattern = lambda s: [int(side(s, i) == "+") for i in range(m)] + [int(c == s) for c, _ in kinks]
    for k in range(d):
        kept = [pattern(s) for s, l in fixed if l == k]
        for s in range(len(classes)):
            felt = any(p.raw[p.active[i]][k] != 0 for i in range(m) if side(s, i) != "-")
            if not felt or (s, k) in fixed:
                continue
            if any(abs(neurons[j]["inner"][k]) < 1 for j in classes[s]):
                exact = lambda s, k: [whole(p.raw[p.active[i]][k]) * p.y[p.active[i]] if side(s, i) == "+" else fmpq(0) for i in range(m)] + [
                    whole(p.raw[p.active[i]][k]) * p.y[p.active[i]] if c == s else fmpq(0) for c, i in kinks]
                same = kept and rank(kept + [pattern(s)]) == rank(kept)
                rows = [exact(*c) for c in fixed]
                need(same or (rows and rank(rows + [exact(s, k)]) == rank(rows)), "a force does not vanish")
                continue
            force = sum((z[u] * x for u, x in pushes(s, k)), arb(0))
            need(all(force * int(neurons[j]["outer"] * neurons[j]["inner"][k]) >= 0 for j in classes[s]), "a weight is pushed inwards")
    margin = z[n - 1]
    need(margin > 0, "margin")
    pieces = []
    for j, q in enumerate(neurons):
        w = [ball(v) for v in q["inner"]]
        for k in range(d):
            if abs(q["inner"][k]) == 1 or q["class"] is None:
                continue
            s, sigma = q["class"], int(q["outer"])
            c = z[first + fixed.index((s, k))] if (s, k) in fixed else arb(0)
            members = classes[s]
            if "0" in q["sides"]:
                w[k] = (sum((ball(neurons[l]["inner"][k]) * sigma for l in members), arb(0)) + c) / len(members) * sigma
            else:
                w[k] += c / sum(1 for l in members if abs(neurons[l]["inner"][k]) < 1) * sigma
            need(abs(w[k]) <= 1, "bound")
        pieces.append((1 if q["outer"] > 0 else -1, abs(ball(q["outer"])), w, q["sides"]))
    p.sides_and_margins(pieces, margin)
    return margin, "undecided"


class Moving:
    """A ball with its derivatives along the unknowns, those that are not 0."""

    def __init__(self, value, along=None):
        self.value, self.along = value, along or {}

    def __add__(self, other):
        along = dict(self.along)
        for u, d in other.along.items():
            along[u] = along[u] + d if u in along else d
        return Moving(self.value + other.value, along)

    def __mul__(self, other):
        along = {u: d * other.value for u, d in self.along.items()}
        for u, d in other.along.items():
            d = d * self.value
            along[u] = along[u] + d if u in along else d
        return Moving(self.value * other.value, along)


def dense_point(case, proof, q):
    """theta - sum lambda grad q + sum eta G theta = 0, active margins 1, kinks 0, turns fixed; see the module `dense`."""
    power, slope, widths, trained = case["power"], case["slope"], case["widths"], case["trained"]
    outputs = case["classes"]
    x, y = [[ball(v) for v in row] for row in case["x"]], case["y"]
    need(0 <= slope < 1 and (power == 1 or slope == 0), "activation")
    margins = []
    for i in range(len(x)):
        if outputs == 1:
            margins.append((i, ((0, int(y[i])),)))
        else:
            margins += [(i, ((int(y[i]), 1), (c, -1))) for c in range(outputs) if c != int(y[i])]
    active, tight, units, sides, turns = proof["active"], q["margins"], q["units"], q["sides"], q.get("turns", [])
    need(tight and tight == sorted(set(tight)) and 0 <= tight[0] and tight[-1] < len(margins), "active margins")
    need(active == sorted({margins[k][0] for k in tight}), "active examples")
    need(len(units) == len(sides) == len(widths), "layers")
    hidden = len(widths)
    may_die = [trained[l] and trained[l + 1] for l in range(hidden)]
    for l in range(hidden):
        need(units[l] == sorted(set(units[l])) and all(0 <= u < widths[l] for u in units[l]), "units")
        need(may_die[l] or len(units[l]) == widths[l], "a unit beside a frozen layer")
        need(len(sides[l]) == len(units[l]) and all(len(s) == len(active) and set(s) <= set("+-0") for s in sides[l]), "sides")
    kinks = [(l, u, i) for l in range(hidden) for u, s in enumerate(sides[l]) for i in range(len(active)) if s[i] == "0"]
    need(power == 1 or not (kinks or turns), "a power has no kinks")
    sizes = [len(x[0])] + [len(u) for u in units] + [outputs]
    number, frozen = {}, iter(q.get("frozen", []))
    constant = {}
    for l in range(hidden + 1):
        for r in range(sizes[l + 1]):
            for c in range(sizes[l]):
                if trained[l]:
                    number[l, r, c] = len(number)
                else:
                    constant[l, r, c] = ball(next(frozen, float("nan")))
    need(next(frozen, None) is None, "frozen weights")
    free = len(number)
    multiplier = {k: free + t for t, k in enumerate(tight)}
    bend = {k: free + len(tight) + t for t, k in enumerate(kinks)}
    first = free + len(tight) + len(kinks)
    n = first + len(turns)
    need(len(proof["midpoint"]) == n, "unknowns")
    pairs = []
    for t in turns:
        l, (a, b) = t["layer"], t["units"]
        need(a != b and may_die[l] and sides[l][a] == sides[l][b], "turn")
        own = [(number[l, a, c], number[l, b, c]) for c in range(sizes[l])]
        pairs.append(own + [(number[l + 1, r, a], number[l + 1, r, b]) for r in range(sizes[l + 2])])
    middle = [ball(v) for v in proof["midpoint"]]

    def lines(z):
        still = lambda v: Moving(arb(v))
        weight = lambda *e: z[number[e]] if e in number else Moving(constant[e])
        total = lambda terms: sum(terms, still(0))
        force = {u: still(0) for u in range(free)}
        level, level_of = {}, {}
        for i, example in enumerate(active):
            h, slopes = [[Moving(v) for v in x[example]]], []
            for l in range(hidden + 1):
                own = [total(weight(l, r, c) * h[l][c] for c in range(sizes[l])) for r in range(sizes[l + 1])]
                if l == hidden:
                    scores = own
                    break
                h.append([]), slopes.append([])
                for u, v in enumerate(own):
                    letter = sides[l][u][i]
                    if letter == "0":
                        s = z[bend[l, u, i]]
                        level[l, u, i] = v
                    elif power == 1:
                        s = still(1 if letter == "+" else slope)
                    else:
                        s = still(0)
                        if letter == "+":
                            below = still(1)
                            for _ in range(power - 1):
                                below = below * v
                            h[-1].append(below * v), slopes[-1].append(below * still(power))
                            continue
                    h[-1].append(s * v), slopes[-1].append(s)
            back = [still(0)] * outputs
            for k in tight:
                if margins[k][0] == example:
                    level_of[k] = total(scores[o] * still(c) for o, c in margins[k][1])
                    for o, c in margins[k][1]:
                        back[o] = back[o] + z[multiplier[k]] * still(c)
            for l in range(hidden, -1, -1):
                for r in range(sizes[l + 1]):
                    for c in range(sizes[l]):
                        if trained[l]:
                            force[number[l, r, c]] = force[number[l, r, c]] + back[r] * h[l][c]
                if l:
                    back = [total(weight(l, r, c) * back[r] for r in range(sizes[l + 1])) * slopes[l - 1][c] for c in range(sizes[l])]
        out = [z[u] + force[u] * still(-1) for u in range(free)]
        fixed = []
        for g, own in enumerate(pairs):
            sum_ = still(0)
            for a, b in own:
                out[a] = out[a] + z[first + g] * z[b] * still(-1)
                out[b] = out[b] + z[first + g] * z[a]
                sum_ = sum_ + Moving(middle[a]) * z[b] + Moving(-middle[b]) * z[a]
            fixed.append(sum_)
        return out + [level_of[k] + still(-1) for k in tight] + [level[k] for k in kinks] + fixed

    def residual(z):
        return [line.value for line in lines([Moving(v) for v in z])]

    def jacobian(z):
        rows = lines([Moving(v, {u: arb(1)}) for u, v in enumerate(z)])
        return [[row.along.get(u, arb(0)) for u in range(n)] for row in rows]

    z = krawczyk(proof, residual, jacobian)
    need(all(z[u] > 0 for u in multiplier.values()), "multipliers")
    need(all(z[u] > ball(slope) and z[u] < 1 for u in bend.values()), "slopes")
    weight = lambda *e: z[number[e]] if e in number else constant[e]
    for example in range(len(x)):
        h = x[example]
        for l in range(hidden + 1):
            own = [dot([weight(l, r, c) for c in range(sizes[l])], h) for r in range(sizes[l + 1])]
            if l == hidden:
                break
            if example in active:
                for u, v in enumerate(own):
                    fine = {"+": v > 0, "-": v < 0, "0": v.contains(0)}[sides[l][u][active.index(example)]]
                    need(fine, f"side of example {example}")
            h = [phi(v, ball(slope)) for v in own]
            if power > 1:
                h = [v.max(arb(0)) ** power for v in h]
        for k, (i, terms) in enumerate(margins):
            twin = any(case["x"][i] == case["x"][margins[m][0]] and terms == margins[m][1] for m in tight)
            if i == example and k not in tight and not twin:
                need(sum((own[o] * c for o, c in terms), arb(0)) > 1, f"margin of example {i}")
    degree = 0
    for l, is_trained in enumerate(trained):
        degree = (degree * power if l else 0) + int(is_trained)
    size = sum((z[u] * z[u] for u in range(free)), arb(0)).sqrt()
    return 1 / size**degree, "undecided"


def answer(case):
    try:
        proof = case["proof"]
        (name, equations), = proof["equations"].items()
        if name == "dense":
            margin, what = dense_point(case, proof, equations)
            return {"holds": True, "why": "", "margin": [float(margin.lower()), float(margin.upper())], "kind": what}
        p = Problem(case)
        margin, what = {"l2": round_point, "l1": diamond_point, "linf": cube_point}[name](p, proof, equations)
        margin = margin * case["factor"][0] / case["factor"][1]
        return {"holds": True, "why": "", "margin": [float(margin.lower()), float(margin.upper())], "kind": what}
    except (No, IndexError, KeyError, ZeroDivisionError, ValueError) as error:
        return {"holds": False, "why": f"{type(error).__name__}: {error}", "margin": [0.0, 0.0], "kind": ""}


if __name__ == "__main__":
    with open(sys.argv[1]) as cases:
        for line in cases:
            print(json.dumps(answer(json.loads(line))), flush=True)
