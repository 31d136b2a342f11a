"""Seeded inserts, updates and deletes on eleven tables, in SQL that Spark and DuckDB both understand."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from tests.spark.tpcds_schema import tables

SHIFT = 1_000_000
"""New keys are old keys plus this times the cycle."""

_CUSTOMERS, _ADDRESSES = 100, 80
"""References are moved among so many; the tables have a few more."""

_CHANNELS = {
    # The sales and the returns of a channel: their tables, prefixes, keys of the order and of the customer.
    "store": ("store_sales", "store_returns", "ss", "sr", "ticket_number", "customer_sk"),
    "catalog": ("catalog_sales", "catalog_returns", "cs", "cr", "order_number", "bill_customer_sk"),
    "web": ("web_sales", "web_returns", "ws", "wr", "order_number", "bill_customer_sk"),
}


class Edits:
    """Rows are chosen by key modulo a number; the remainder is random.

    Each statement touches few orders, as most queries see only a few rows; together they touch about a third.
    Orders change with their returns, or Q17, Q25, Q29 and the like would soon be empty.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def batch(self, cycle: int) -> list[str]:
        shift = SHIFT * cycle
        statements = [s for channel in _CHANNELS for s in self._order_edits(channel, shift)]
        return [
            *statements,
            *self._inventory_edits(),
            *self._customer_edits(shift),
            *self._address_edits(shift),
            *self._item_edits(shift),
            *self._store_edits(shift),
        ]

    def _order_edits(self, channel: str, shift: int) -> Iterable[str]:
        sales, returns, s, r, number, customer = _CHANNELS[channel]
        sold, returned = f"{s}_{number}", f"{r}_{number}"
        amount = "cr_return_amount" if r == "cr" else f"{r}_return_amt"
        copied, dropped = self._some(9), self._some(31)
        yield _copy(
            sales,
            {sold: f"{sold} + {shift}", f"{s}_quantity": f"{s}_quantity + 1"}
            | _raised(f"{s}_", ("sales_price", "ext_sales_price", "net_paid", "net_profit"), self._cents()),
            f"{sold} {copied} AND {sold} < {SHIFT}",
        )
        yield _copy(
            returns,
            {returned: f"{returned} + {shift}"} | {amount: f"{amount} + {self._cents()}"},
            f"{returned} {copied} AND {returned} < {SHIFT}",
        )
        # Both days of a sale move within the week, so that most stay in the month a query asks for.
        yield (
            f"UPDATE {sales} SET {s}_sold_date_sk = {s}_sold_date_sk + {self._one_of(-1, 1, 2)}, "
            f"{s}_net_profit = {s}_net_profit + {self._cents()} WHERE {sold} {self._some(29)}"
        )
        raised = _raised(
            f"{s}_", ("list_price", "ext_sales_price", "ext_discount_amt", "net_paid"), self._cents()
        )
        yield _update(sales, {f"{s}_quantity": f"{s}_quantity + 1"} | raised, f"{sold} {self._some(8)}")
        moved = f"({s}_{customer} + {self._number(1, 30)}) % {_CUSTOMERS} + 1"
        yield _update(sales, {f"{s}_{customer}": moved}, f"{sold} {self._some(37)}")
        yield _update(sales, {f"{s}_promo_sk": "NULL", f"{s}_coupon_amt": "0"}, f"{sold} {self._some(41)}")
        yield f"DELETE FROM {sales} WHERE {sold} {dropped}"
        yield f"DELETE FROM {returns} WHERE {returned} {dropped}"
        yield _update(
            returns,
            _raised(f"{r}_", ("return_quantity",), 1)
            | {amount: f"{amount} + {self._cents()}"}
            | _raised(f"{r}_", ("return_amt_inc_tax", "refunded_cash", "net_loss", "fee"), self._cents()),
            f"{returned} {self._some(6)}",
        )
        yield f"DELETE FROM {returns} WHERE {returned} {self._some(43)}"

    def _inventory_edits(self) -> Iterable[str]:
        quantity = "inv_quantity_on_hand"
        key = "(inv_item_sk * 7 + inv_date_sk)"
        yield _copy("inventory", {quantity: f"{quantity} + {self._number(1, 9)}"}, f"{key} {self._some(37)}")
        yield _update(
            "inventory", {quantity: f"{quantity} + {self._number(2, 12)}"}, f"inv_item_sk {self._some(7)}"
        )
        yield _update(
            "inventory", {"inv_warehouse_sk": "inv_warehouse_sk % 5 + 1"}, f"{key} {self._some(71)}"
        )
        yield f"DELETE FROM inventory WHERE {key} {self._some(67)}"

    def _customer_edits(self, shift: int) -> Iterable[str]:
        key = "c_customer_sk"
        new = {key: f"{key} + {shift}", "c_customer_id": f"concat('NEW{shift}', c_customer_id)"}
        yield _copy("customer", new, f"{key} {self._some(19)} AND {key} < {SHIFT}")
        yield _update(
            "customer",
            {"c_last_name": f"'{self._one_of('Lovelace', 'Curie', 'Meitner')}'", "c_salutation": "'Dr.'"},
            f"{key} {self._some(6)}",
        )
        moved = f"(c_current_addr_sk + {self._number(1, 20)}) % {_ADDRESSES} + 1"
        yield _update("customer", {"c_current_addr_sk": moved}, f"{key} {self._some(43)}")
        yield _update(
            "customer", {"c_current_cdemo_sk": "c_current_cdemo_sk % 70 + 1"}, f"{key} {self._some(29)}"
        )
        yield f"DELETE FROM customer WHERE {key} {self._some(53)}"

    def _address_edits(self, shift: int) -> Iterable[str]:
        key = "ca_address_sk"
        yield _copy(
            "customer_address", {key: f"{key} + {shift}"}, f"{key} {self._some(29)} AND {key} < {SHIFT}"
        )
        yield _update(
            "customer_address",
            {
                "ca_city": f"'{self._one_of('Oak Grove', 'Salem')}'",
                "ca_street_number": f"'{self._number(1, 99)}'",
            },
            f"{key} {self._some(23)}",
        )
        yield _update("customer_address", {"ca_county": "'Rush County'"}, f"{key} {self._some(41)}")
        yield f"DELETE FROM customer_address WHERE {key} {self._some(61)}"

    def _item_edits(self, shift: int) -> Iterable[str]:
        key = "i_item_sk"
        new = {key: f"{key} + {shift}", "i_product_name": f"concat(i_product_name, ' of {shift}')"}
        copied = self._some(13)
        yield _copy("item", new, f"{key} {copied} AND {key} < {SHIFT}")
        # Something new must be sold and stocked, or no query would see it.
        yield _update(
            "store_sales", {"ss_item_sk": f"ss_item_sk + {shift}"}, self._one_in_three("ss", copied)
        )
        yield _update("web_sales", {"ws_item_sk": f"ws_item_sk + {shift}"}, self._one_in_three("ws", copied))
        yield _update(
            "item",
            {
                "i_current_price": "i_current_price + 0.02",
                "i_item_desc": f"'now number {self._number(1, 999)}'",
            },
            f"{key} {self._some(17)}",
        )
        # The few things whose description is all that Q37 and Q82 tell.
        told = f"concat('item ', {key}, ' at {shift}')"
        yield _update("item", {"i_item_desc": told}, f"i_manufact_id IN (129, 677) AND {key} {self._some(2)}")
        yield _update("item", {"i_manager_id": f"{self._one_of(1, 8, 28)}"}, f"{key} {self._some(31)}")
        yield f"DELETE FROM item WHERE {key} {self._some(59)}"

    def _store_edits(self, shift: int) -> Iterable[str]:
        """Twelve rows: one is copied and one changed. A copy is dropped again two cycles later."""
        key, chosen = "s_store_sk", self._number(1, 12)
        new = {key: f"{key} + {shift}", "s_store_id": f"concat('NEW{shift}', s_store_id)"}
        yield _copy("store", new, f"{key} = {chosen}")
        yield _update(
            "store_sales",
            {"ss_store_sk": f"ss_store_sk + {shift}"},
            f"ss_store_sk = {chosen} AND ss_ticket_number {self._some(5)}",
        )
        yield _update(
            "store",
            {
                "s_number_employees": "s_number_employees - 1",
                "s_street_name": f"'Street {self._number(1, 99)}'",
            },
            f"{key} {self._some(4)}",
        )
        yield f"DELETE FROM store WHERE {key} >= {SHIFT} AND {key} < {shift - SHIFT}"

    def _one_in_three(self, prefix: str, copied: str) -> str:
        number = {"ss": "ss_ticket_number", "ws": "ws_order_number"}[prefix]
        return f"{prefix}_item_sk {copied} AND {prefix}_item_sk < {SHIFT} AND {number} {self._some(3)}"

    def _some(self, one_in: int) -> str:
        return f"% {one_in} = {self._random.randrange(one_in)}"

    def _number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def _cents(self) -> str:
        return f"{self._random.randint(1, 200) / 100:.2f}"

    def _one_of(self, *values: object) -> object:
        return self._random.choice(values)


def _raised(prefix: str, columns: Iterable[str], by: object) -> dict[str, str]:
    return {prefix + column: f"{prefix}{column} + {by}" for column in columns}


def _copy(table: str, changes: Mapping[str, str], where: str) -> str:
    columns = tables()[table]
    assert changes.keys() <= columns.keys(), f"{table} has no {changes.keys() - columns.keys()}"
    return f"INSERT INTO {table} SELECT {', '.join(changes.get(c, c) for c in columns)} FROM {table} WHERE {where}"


def _update(table: str, changes: Mapping[str, str], where: str) -> str:
    return f"UPDATE {table} SET {', '.join(f'{c} = {e}' for c, e in changes.items())} WHERE {where}"
