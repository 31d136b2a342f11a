"""Addresses and customers: the states, cities, counties and zips that the queries name."""

from __future__ import annotations

import random
from typing import Any

from tests.spark.tpcds_rows import Row, matching, part

STORE_ZIP = "24128"
"""The zip of many customers and of some stores: Q8 and Q24 compare the two."""

HERMITS = "ICELAND"
"""Customers born here buy in stores only: Q69 asks for those."""

WHALES = "NORWAY"
"""Customers born here buy the most: Q23 asks for those."""

_STATES = ("TX", "OH", "OR", "NM", "KY", "VA", "MS", "GA", "CA", "WA", "IN", "ND", "OK", "MN", "CO", "NJ", "WI", "CT", "LA", "IA", "AR", "IL", "TN")  # fmt: skip
_COUNTIES = (
    "Rush County", "Toole County", "Jefferson County", "Dona Ana County", "La Porte County", "Williamson County",
    "Walker County", "Ziebach County", "Orange County", "Bronx County", "Franklin Parish",
)  # fmt: skip
_CITIES = ("Midway", "Fairview", "Edgewood", "Oak Grove", "Five Points", "Pleasant Hill")
_ZIPS = (STORE_ZIP, "85669", "86197", "88274", "76232", "65084", "31904", "35709")

_WANTED_ADDRESSES: tuple[tuple[int, Row], ...] = (
    (6, {"ca_zip": STORE_ZIP, "ca_state": "TN"}),  # 8, 24
    (4, {"ca_county": "Williamson County", "ca_state": "TN"}),  # 54
    (5, {"ca_state": "GA", "ca_gmt_offset": -5}),  # 6, 16, 30, 81
    (4, {"ca_state": "IL"}),  # 94, 95
    (3, {"ca_state": "KY", "ca_city": "Midway"}),  # 13, 48, 69, 85
    (4, {"ca_city": "Edgewood"}),  # 46, 68, 84
    (4, {"ca_gmt_offset": -7}),  # 91
    (3, {"ca_state": "MS", "ca_county": "Rush County"}),  # 10, 18
    (3, {"ca_state": "CA", "ca_zip": "85669"}),  # 15, 45
)

_WANTED_CUSTOMERS: tuple[tuple[int, Row, Row], ...] = (
    # How many, the customer's own values, and what the home and the demographics must be.
    (20, {"c_preferred_cust_flag": "Y", "c_birth_country": "CHILE"}, {"ca_zip": STORE_ZIP}),
    (8, {}, {"ca_county": "Williamson County", "ca_state": "TN"}),
    (8, {}, {"ca_state": "GA"}),
    (8, {}, {"ca_city": "Edgewood", "hd_income_band_sk": (5, 8)}),
    (4, {}, {"ca_gmt_offset": -7, "cd_marital_status": "M", "cd_education_status": "Unknown", "hd_buy_potential": "Unknown"}),
    (4, {}, {"ca_gmt_offset": -7, "cd_marital_status": "W", "cd_education_status": "Advanced Degree", "hd_buy_potential": "Unknown"}),
    (6, {"c_birth_month": 6}, {"ca_state": "MS", "ca_county": "Rush County"}),
    (5, {}, {"ca_zip": "85669", "cd_marital_status": "S"}),
    (10, {"c_birth_country": HERMITS}, {"ca_state": {"KY", "GA", "NM"}}),
    (4, {"c_birth_country": WHALES}, {}),
)  # fmt: skip

_PLAIN_ADDRESSES, _PLAIN_CUSTOMERS = 45, 40


def addresses(chance: random.Random) -> list[Row]:
    wanted = [values for count, values in _WANTED_ADDRESSES for _ in range(count)]
    return [_address(n, values, chance) for n, values in enumerate(wanted + [{}] * _PLAIN_ADDRESSES, start=1)]


def _address(number: int, values: Row, chance: random.Random) -> Row:
    made = {
        "ca_address_sk": number,
        "ca_address_id": f"ADDRESSA{number:08}",
        "ca_street_number": str(chance.randint(1, 999)),
        "ca_city": chance.choice(_CITIES),
        "ca_county": chance.choice(_COUNTIES),
        "ca_state": chance.choice(_STATES),
        "ca_zip": chance.choice(_ZIPS),
        "ca_country": "United States",
        "ca_gmt_offset": chance.choice([-5, -5, -6, -7, -8]),
    }
    for column in ("ca_city", "ca_county", "ca_zip", "ca_gmt_offset"):
        if chance.random() < 0.03:
            made[column] = None
    return made | values


def customers(made: dict[str, list[Row]], chance: random.Random) -> list[Row]:
    wanted = [(own, home) for count, own, home in _WANTED_CUSTOMERS for _ in range(count)]
    plain: list[tuple[Row, Row]] = [({}, {})] * _PLAIN_CUSTOMERS
    return [_customer(n, own, home, made, chance) for n, (own, home) in enumerate(wanted + plain, start=1)]


def _customer(number: int, own: Row, home: Row, made: dict[str, list[Row]], chance: random.Random) -> Row:
    def key(table: str, prefix: str, column: str) -> Any:
        return chance.choice(matching(made[table], part(home, prefix)))[column]

    days = made["date_dim"]
    values = {
        "c_customer_sk": number,
        "c_customer_id": f"CUSTOMER{number:08}",
        "c_current_cdemo_sk": key("customer_demographics", "cd", "cd_demo_sk"),
        "c_current_hdemo_sk": key("household_demographics", "hd", "hd_demo_sk"),
        "c_current_addr_sk": key("customer_address", "ca", "ca_address_sk"),
        "c_first_sales_date_sk": chance.choice(days[:900])["d_date_sk"],
        "c_first_shipto_date_sk": chance.choice(days[:900])["d_date_sk"],
        # Few names: Q38 and Q87 compare customers by name.
        "c_first_name": chance.choice(["Ada", "Emmy", "Grace", "Mary", "Sofia", None]),
        "c_last_name": chance.choice(["Byron", "Noether", "Hopper", "Somerville", "Brown", "Jones", "Lee"]),
        "c_preferred_cust_flag": chance.choice("YN"),
        "c_birth_day": chance.randint(1, 28),
        "c_birth_month": chance.randint(1, 12),
        "c_birth_year": chance.randint(1930, 1990),
        "c_birth_country": chance.choice(["CHILE", "TOGO", "FRANCE", "NEPAL", "UNITED STATES"]),
    }
    return values | own
