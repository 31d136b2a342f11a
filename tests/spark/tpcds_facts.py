"""The seven large tables: the stories told, and many sales without a story."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tests.spark.tpcds_dimensions import FIRST_DAY, Dimensions, day_key
from tests.spark.tpcds_people import HERMITS, WHALES
from tests.spark.tpcds_rows import Row, Where, cents, matching, part
from tests.spark.tpcds_schema import Columns
from tests.spark.tpcds_stories import CHANNELS, STORIES, Bounds, Return, Sale, Story

_SALES = {"store": ("store_sales", "ss"), "catalog": ("catalog_sales", "cs"), "web": ("web_sales", "ws")}
_RETURNS = {
    "store": ("store_returns", "sr"),
    "catalog": ("catalog_returns", "cr"),
    "web": ("web_returns", "wr"),
}
_ROLES = ("", "bill_", "ship_", "refunded_", "returning_")
_REFERRED = {
    # By the name of the key without its role: the table, its key and the prefix of its columns.
    "sold_time_sk": ("time_dim", "t_time_sk", "t"),
    "store_sk": ("store", "s_store_sk", "s"),
    "promo_sk": ("promotion", "p_promo_sk", "p"),
    "call_center_sk": ("call_center", "cc_call_center_sk", "cc"),
    "catalog_page_sk": ("catalog_page", "cp_catalog_page_sk", "cp"),
    "ship_mode_sk": ("ship_mode", "sm_ship_mode_sk", "sm"),
    "web_page_sk": ("web_page", "wp_web_page_sk", "wp"),
    "web_site_sk": ("web_site", "web_site_sk", "web"),
}
_PLAIN_SALES = 900
_SHY = {HERMITS, WHALES}


class Facts:
    """Tells stories; the rows come to rest in `tables`."""

    def __init__(self, schema: Mapping[str, Columns], dimensions: Dimensions, chance: random.Random) -> None:
        self._schema, self._rows, self._chance = schema, dimensions, chance
        self._number = 0
        self._found: dict[tuple[str, str], Sequence[Row]] = {}
        self._people = _with_homes(dimensions)
        names = [name for name, _ in (*_SALES.values(), *_RETURNS.values())]
        self.tables: dict[str, list[Row]] = {name: [] for name in (*names, "inventory")}

    def tell_all(self) -> None:
        for story in STORIES:
            for _ in range(story.times):
                self._tell(story)
        for n in range(_PLAIN_SALES):
            channel = CHANNELS[n % 3]
            returned = Return() if self._chance.random() < 0.25 else None
            self._tell(
                Story((Sale(channel, lines=self._chance.randint(1, 3), returned=returned),)), plain=True
            )
        self._stock_everything()

    def _tell(self, story: Story, plain: bool = False) -> None:
        customer = self._customer(story.customer)
        item = self._one("item", story.item)
        day: Row | None = None
        for sale in story.sales:
            if day is None or not story.same_day:
                day = self._one("date_dim", part(sale.where, "d"))
            self._sell(sale, customer, item, day["d_date"], plain)

    def _customer(self, where: Where) -> Row:
        """Those born in certain countries have stories of their own."""
        wanted = part(where, "c", "ca", "cd", "hd")
        found = matching(self._people, wanted)
        if "c_birth_country" not in where:
            found = [person for person in found if person["c_birth_country"] not in _SHY]
        return self._chance.choice(found)

    def _sell(self, sale: Sale, customer: Row, item: Row, day: datetime.date, plain: bool) -> None:
        self._number += 1
        table, prefix = _SALES[sale.channel]
        header = self._header(sale, customer, day)
        warehouses = self._chance.sample(self._rows["warehouse"], k=2)
        for line in range(sale.lines):
            bought = item if line == 0 else self._one("item", {})
            values = header | _amounts(sale.amounts, self._chance)
            values |= {
                "item_sk": bought["i_item_sk"],
                "warehouse_sk": warehouses[line % 2]["w_warehouse_sk"],
            }
            self._put(table, prefix, values, plain)
            if sale.returned and line == 0:
                self._take_back(sale, values, day, plain)
            if sale.stock:
                self._stock(bought, day, self._chance.randint(*sale.stock))

    def _header(self, sale: Sale, customer: Row, day: datetime.date) -> Row:
        values: Row = {
            "sold_date_sk": day_key(day),
            "ship_date_sk": day_key(day) + self._chance.randint(*sale.shipped),
            "ticket_number": self._number,
            "order_number": self._number,
        }
        for name, (table, key, prefix) in _REFERRED.items():
            values[name] = self._one(table, part(sale.where, prefix))[key]
        people = {
            "customer_sk": customer["c_customer_sk"],
            "addr_sk": self._or_home(sale.where, "customer_address", "ca", customer, "ca_address_sk"),
            "cdemo_sk": self._or_home(sale.where, "customer_demographics", "cd", customer, "cd_demo_sk"),
            "hdemo_sk": self._or_home(sale.where, "household_demographics", "hd", customer, "hd_demo_sk"),
        }
        if sale.no_address:
            people["addr_sk"] = None
        return values | {role + name: value for role in _ROLES for name, value in people.items()}

    def _or_home(self, where: Where, table: str, prefix: str, customer: Row, key: str) -> Any:
        wanted = part(where, prefix)
        return self._one(table, wanted)[key] if wanted else customer[key]

    def _take_back(self, sale: Sale, sold: Row, day: datetime.date, plain: bool) -> None:
        assert sale.returned
        if part(sale.returned.where, "d"):
            returned = self._one("date_dim", part(sale.returned.where, "d"))["d_date"]
        else:
            returned = day + datetime.timedelta(days=self._chance.randint(*sale.returned.after))
        values = sold | _refund(sold, sale.returned.amounts, self._chance)
        values |= {
            "returned_date_sk": day_key(returned),
            "return_time_sk": sold["sold_time_sk"],
            "returned_time_sk": sold["sold_time_sk"],
            "reason_sk": self._one("reason", part(sale.returned.where, "r"))["r_reason_sk"],
        }
        table, prefix = _RETURNS[sale.channel]
        self._put(table, prefix, values, plain)

    def _stock(self, item: Row, day: datetime.date, quantity: int | None) -> None:
        """Stock is taken on Mondays, and a thing has its warehouse: Q21 and Q39 compare one day with another."""
        monday = max(day - datetime.timedelta(days=day.weekday()), FIRST_DAY)
        self.tables["inventory"].append(
            {
                "inv_date_sk": day_key(monday),
                "inv_item_sk": item["i_item_sk"],
                "inv_warehouse_sk": item["i_item_sk"] % 5 + 1,
                "inv_quantity_on_hand": quantity,
            }
        )

    def _stock_everything(self) -> None:
        """Some stock of all things in 2000, but not in spring, where Q21 wants little change; for Q39, stock that
        varies wildly at the beginning of 2001."""
        for item in self._rows["item"]:
            for month in (1, 5, 6, 8, 10, 12):
                quantity = None if self._chance.random() < 0.03 else self._chance.randint(1, 900)
                self._stock(item, datetime.date(2000, month, 14), quantity)
        for item, day in ((i, d) for i in self._rows["item"][:40] for d in range(5)):
            for month in (1, 2):
                quantity = self._chance.randint(700, 900) if day == 3 else self._chance.randint(1, 9)
                self._stock(item, datetime.date(2001, month, 7 * day % 28 + 1), quantity)

    def _put(self, table: str, prefix: str, values: Row, plain: bool) -> None:
        row = {column: values[column.removeprefix(prefix + "_")] for column in self._schema[table]}
        if plain:
            row = {column: self._sometimes_null(column, value) for column, value in row.items()}
        self.tables[table].append(row)

    def _sometimes_null(self, column: str, value: Any) -> Any:
        needed = column.endswith(("_item_sk", "_number", "_sold_date_sk", "_quantity"))
        return None if not needed and self._chance.random() < 0.03 else value

    def _one(self, table: str, where: Where) -> Row:
        key = (table, repr(where))
        if key not in self._found:
            self._found[key] = matching(self._rows[table], where)
        return self._chance.choice(self._found[key])


def _with_homes(dimensions: Dimensions) -> list[Row]:
    """Customers with the columns of their address and demographics."""
    addresses = {row["ca_address_sk"]: row for row in dimensions["customer_address"]}
    people = {row["cd_demo_sk"]: row for row in dimensions["customer_demographics"]}
    households = {row["hd_demo_sk"]: row for row in dimensions["household_demographics"]}
    return [
        row
        | addresses[row["c_current_addr_sk"]]
        | people[row["c_current_cdemo_sk"]]
        | households[row["c_current_hdemo_sk"]]
        for row in dimensions["customer"]
    ]


def _amounts(bounds: Mapping[str, Bounds], chance: random.Random) -> Row:
    def bounded(name: str, usual: Decimal) -> Decimal:
        return cents(chance.uniform(*bounds[name])) if name in bounds else usual

    quantity = chance.randint(*(int(b) for b in bounds.get("quantity", (1, 60))))
    wholesale = bounded("wholesale_cost", cents(chance.uniform(1, 90)))
    listed = bounded("list_price", cents(float(wholesale) * chance.uniform(1.1, 2)))
    price = bounded("sales_price", cents(float(listed) * chance.uniform(0.4, 1)))
    extended = bounded("ext_sales_price", price * quantity)
    coupon = cents(float(extended) * chance.choice([0, 0, 0, 0.2]))
    tax, shipping = cents(float(extended) * 0.07), cents(float(listed) * quantity * 0.1)
    paid = extended - coupon
    return {
        "quantity": quantity,
        "wholesale_cost": wholesale,
        "list_price": listed,
        "sales_price": price,
        "ext_discount_amt": max(listed - price, Decimal(0)) * quantity,
        "ext_sales_price": extended,
        "ext_wholesale_cost": wholesale * quantity,
        "ext_list_price": bounded("ext_list_price", listed * quantity),
        "ext_tax": tax,
        "coupon_amt": coupon,
        "ext_ship_cost": shipping,
        "net_paid": paid,
        "net_paid_inc_tax": paid + tax,
        "net_paid_inc_ship": paid + shipping,
        "net_paid_inc_ship_tax": paid + shipping + tax,
        "net_profit": bounded("net_profit", paid - wholesale * quantity),
    }


def _refund(sold: Row, bounds: Mapping[str, Bounds], chance: random.Random) -> Row:
    """Fewer pieces come back than were sold, so that no query divides by a quantity of zero."""
    quantity = chance.randint(1, max(sold["quantity"] - 1, 1))
    amount = sold["sales_price"] * quantity
    if "return_amt" in bounds:
        amount = cents(chance.uniform(*bounds["return_amt"]))
    fee, tax = cents(chance.uniform(1, 99)), cents(float(amount) * 0.07)
    parts = {
        "refunded_cash": amount / 2,
        "reversed_charge": amount / 4,
        "store_credit": amount / 4,
    }
    parts |= {name: cents(chance.uniform(*bounds[name])) for name in parts if name in bounds}
    parts = {name: cents(float(value)) for name, value in parts.items()}
    return parts | {
        "return_quantity": quantity,
        "return_amt": amount,
        "return_amount": amount,
        "return_tax": tax,
        "return_amt_inc_tax": amount + tax,
        "fee": fee,
        "return_ship_cost": cents(chance.uniform(1, 500)),
        "account_credit": parts["store_credit"],
        "net_loss": fee + tax,
    }


def generate(
    schema: Mapping[str, Columns], dimensions: Dimensions, chance: random.Random
) -> dict[str, list[Row]]:
    facts = Facts(schema, dimensions, chance)
    facts.tell_all()
    return facts.tables
