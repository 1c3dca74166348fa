# SPDX-License-Identifier: Apache-2.0
"""Decision diagrams whose leaves are sets of server states.

A diagram is a function from regions of facts to a set of (vm_state,
task_state) pairs, in which something holds. An inner node asks one fact; a
leaf is an int with one bit for each of the 516 pairs, so that a rule about
states alone is a single int. Equal diagrams are the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from state_policy.engine.states import TASK_STATES, VM_STATES

#: The task_states in the order of the bits; None where no task runs.
TASKS: tuple[str | None, ...] = (None, *TASK_STATES)
WIDTH = len(TASKS)
#: Number of (vm_state, task_state) pairs.
PLANE = len(VM_STATES) * WIDTH
#: Every pair.
FULL = (1 << PLANE) - 1
#: Every pair of the first vm_state.
ROW = (1 << WIDTH) - 1
#: The first task_state (none) of every vm_state.
COLUMN = sum(1 << (WIDTH * row) for row in range(len(VM_STATES)))


#: So many nodes are made for one space; a set of rules that people write
#: needs some thousands.
LIMIT = 500_000


class TooIntricateError(Exception):
    """Rules whose diagrams would fill the memory; there is no answer."""

    def __init__(self) -> None:
        super().__init__(
            "the rules are too intricate to be analysed exactly: they need "
            f"more than {LIMIT:,} nodes; look for rules that combine dozens "
            "of facts"
        )


class Node:
    """An inner node.

    :ivar axis: index of the fact it asks
    :ivar children: one diagram for each region of the fact
    """

    __slots__ = ("axis", "children")

    def __init__(self, axis: int, children: tuple[Diagram, ...]) -> None:
        self.axis = axis
        self.children = children


Diagram = int | Node


def bit(vm_state: int, task_state: int) -> int:
    """Return the set of one pair, given by the two indexes."""
    return 1 << (vm_state * WIDTH + task_state)


def pair_bit(vm_state: str, task_state: str | None) -> int:
    """Return the set of one pair, given by the two states."""
    return bit(VM_STATES.index(vm_state), TASKS.index(task_state))


def pairs(bits: int) -> Iterator[tuple[str, str | None]]:
    """Yield the (vm_state, task_state) pairs of a set."""
    while bits:
        low = bits & -bits
        row, column = divmod(low.bit_length() - 1, WIDTH)
        yield VM_STATES[row], TASKS[column]
        bits ^= low


class Diagrams:
    """Makes and combines diagrams; keeps them unique."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, tuple[Diagram, ...]], Node] = {}
        self._and: dict[tuple[Diagram, Diagram], Diagram] = {}
        self._not: dict[Node, Diagram] = {}

    def node(self, axis: int, children: Sequence[Diagram]) -> Diagram:
        """Return the diagram that asks a fact first."""
        key = (axis, tuple(children))
        first = key[1][0]
        if all(child is first or child == first for child in key[1]):
            return first
        found = self._nodes.get(key)
        if found is None:
            if len(self._nodes) >= LIMIT:
                raise TooIntricateError
            found = self._nodes[key] = Node(*key)
        return found

    def invert(self, diagram: Diagram) -> Diagram:
        """Return where a diagram does not hold."""
        if isinstance(diagram, int):
            return FULL ^ diagram
        found = self._not.get(diagram)
        if found is None:
            found = self.node(
                diagram.axis, [self.invert(c) for c in diagram.children]
            )
            self._not[diagram] = found
            if isinstance(found, Node):
                self._not[found] = diagram
        return found

    def both(self, left: Diagram, right: Diagram) -> Diagram:
        """Return where two diagrams hold."""
        if isinstance(left, int):
            if isinstance(right, int):
                return left & right
            left, right = right, left
        # Here left is a node.
        if isinstance(right, int):
            if right == FULL:
                return left
            if not right:
                return 0
        elif left is right:
            return left
        key = (left, right)
        found = self._and.get(key)
        if found is None:
            found = self._and[key] = self._descend(left, right)
        return found

    def _descend(self, left: Diagram, right: Diagram) -> Diagram:
        assert isinstance(left, Node)
        if isinstance(right, int) or left.axis < right.axis:
            return self.node(
                left.axis, [self.both(c, right) for c in left.children]
            )
        if left.axis > right.axis:
            return self.node(
                right.axis, [self.both(left, c) for c in right.children]
            )
        return self.node(
            left.axis,
            [
                self.both(a, b)
                for a, b in zip(left.children, right.children, strict=True)
            ],
        )

    def either(self, left: Diagram, right: Diagram) -> Diagram:
        """Return where at least one of two diagrams holds."""
        if isinstance(left, int) and isinstance(right, int):
            return left | right
        return self.invert(self.both(self.invert(left), self.invert(right)))

    def without(self, left: Diagram, right: Diagram) -> Diagram:
        """Return where the left diagram holds and the right does not."""
        return self.both(left, self.invert(right))

    def union(self, diagrams: Sequence[Diagram]) -> Diagram:
        """Return where at least one of many holds."""
        result: Diagram = 0
        for diagram in diagrams:
            result = self.either(result, diagram)
        return result

    def choose(self, diagram: Diagram, axis: int, region: int) -> Diagram:
        """Return a diagram with one fact settled to a region."""
        return self._replace(
            diagram, axis, lambda children: [children[region]] * len(children)
        )

    def exists(self, diagram: Diagram, axis: int) -> Diagram:
        """Return where some region of a fact makes the diagram hold."""
        return self._replace(
            diagram,
            axis,
            lambda children: [self.union(children)] * len(children),
        )

    def reach(
        self, diagram: Diagram, axis: int, steps: Sequence[Sequence[int]]
    ) -> Diagram:
        """Return where a fact can come to a region in which it holds.

        :param steps: for each region the regions it can come to
        """
        return self._replace(
            diagram,
            axis,
            lambda children: [
                self.union([children[to] for to in found]) for found in steps
            ],
        )

    def _replace(
        self,
        diagram: Diagram,
        axis: int,
        change: Callable[[tuple[Diagram, ...]], Sequence[Diagram]],
    ) -> Diagram:
        seen: dict[Node, Diagram] = {}

        def go(part: Diagram) -> Diagram:
            if isinstance(part, int) or part.axis > axis:
                return part
            found = seen.get(part)
            if found is None:
                children = part.children
                found = self.node(
                    part.axis,
                    change(children)
                    if part.axis == axis
                    else [go(child) for child in children],
                )
                seen[part] = found
            return found

        return go(diagram)

    def over_states(
        self, diagram: Diagram, change: Callable[[int], int]
    ) -> Diagram:
        """Return a diagram with every leaf changed."""
        seen: dict[Diagram, Diagram] = {}

        def go(part: Diagram) -> Diagram:
            found = seen.get(part)
            if found is None:
                found = (
                    change(part)
                    if isinstance(part, int)
                    else self.node(part.axis, [go(c) for c in part.children])
                )
                seen[part] = found
            return found

        return go(diagram)


def any_task(bits: int) -> int:
    """Return the pairs from which some task_state leads into the set."""
    result = 0
    for row in range(len(VM_STATES)):
        mask = ROW << (row * WIDTH)
        if bits & mask:
            result |= mask
    return result


def any_state(bits: int) -> int:
    """Return all pairs if the set has one, else none."""
    return FULL if bits else 0


def count(diagram: Diagram, arity: Sequence[int], axes: Sequence[int]) -> int:
    """Return how many cells a diagram holds in.

    :param arity: number of regions of each axis
    :param axes: the axes that make the space, ascending; those of the
        diagram must be among them
    """
    seen: dict[tuple[Diagram, int], int] = {}

    def go(part: Diagram, at: int) -> int:
        if at == len(axes):
            assert isinstance(part, int)
            return part.bit_count()
        found = seen.get((part, at))
        if found is None:
            if isinstance(part, Node) and part.axis == axes[at]:
                found = sum(go(child, at + 1) for child in part.children)
            else:
                found = arity[axes[at]] * go(part, at + 1)
            seen[part, at] = found
        return found

    return go(diagram, 0)


def paths(
    diagram: Diagram,
) -> Iterator[tuple[dict[int, tuple[int, ...]], int]]:
    """Yield the parts of a diagram: regions of facts, and a set of states.

    Parts do not overlap, and regions of one fact that lead to the same are
    in one part. Empty parts are left out.
    """
    if isinstance(diagram, int):
        if diagram:
            yield {}, diagram
        return
    grouped: dict[Diagram, list[int]] = {}
    for region, child in enumerate(diagram.children):
        grouped.setdefault(child, []).append(region)
    for child, regions in grouped.items():
        for found, bits in paths(child):
            yield {diagram.axis: tuple(regions), **found}, bits


def leaves(left: Diagram, right: Diagram) -> set[tuple[int, int]]:
    """Return every pair of leaves that some regions of facts lead to."""
    found: set[tuple[int, int]] = set()
    seen: set[tuple[Diagram, Diagram]] = set()
    todo = [(left, right)]
    while todo:
        pair = todo.pop()
        if pair in seen:
            continue
        seen.add(pair)
        one, other = pair
        if isinstance(one, int) and isinstance(other, int):
            found.add((one, other))
        else:
            todo.extend(_below(one, other))
    return found


def _below(one: Diagram, other: Diagram) -> list[tuple[Diagram, Diagram]]:
    """Return both diagrams a step further, by the axis that comes first."""
    first = min(part.axis for part in (one, other) if isinstance(part, Node))
    ones, others = (
        part.children
        if isinstance(part, Node) and part.axis == first
        else None
        for part in (one, other)
    )
    size = len(ones or others or ())
    return list(
        zip(ones or [one] * size, others or [other] * size, strict=True)
    )


def axes_of(*diagrams: Diagram) -> tuple[int, ...]:
    """Return the axes that diagrams ask, ascending."""
    found: set[int] = set()
    seen: set[Node] = set()
    todo = list(diagrams)
    while todo:
        part = todo.pop()
        if isinstance(part, Node) and part not in seen:
            seen.add(part)
            found.add(part.axis)
            todo.extend(part.children)
    return tuple(sorted(found))
