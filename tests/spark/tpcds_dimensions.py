"""The seventeen small tables of TPC-DS, drawn from the very values the queries ask for.

Keys are 1, 2, 3, … except for days, which have the specification's Julian numbers, and times of day, which are seconds.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.spark.tpcds_people import addresses, customers
from tests.spark.tpcds_rows import Row, cents, completed
from tests.spark.tpcds_schema import Columns
from tests.spark.tpcds_things import items, stores

FIRST_DAY, LAST_DAY = datetime.date(1998, 1, 1), datetime.date(2003, 12, 31)
_JULIAN = 1721425
"""The Julian number of the day before ordinal 1 of Python's calendar."""
_NAMES = ("ought", "able", "pri", "ese", "anti", "cally", "ation", "eing")


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The rows by table."""

    tables: dict[str, list[Row]] = field(default_factory=dict)

    def __getitem__(self, table: str) -> list[Row]:
        return self.tables[table]


def generate(schema: dict[str, Columns], chance: random.Random) -> Dimensions:
    made: dict[str, list[Row]] = {}
    makers: dict[str, Callable[[], list[Row]]] = {
        "date_dim": _days,
        "time_dim": _times,
        "income_band": _income_bands,
        "customer_demographics": lambda: _customer_demographics(chance),
        "household_demographics": lambda: _household_demographics(chance),
        "customer_address": lambda: addresses(chance),
        "customer": lambda: customers(made, chance),
        "item": lambda: items(chance),
        "store": lambda: stores(chance),
        "warehouse": _warehouses,
        "ship_mode": _ship_modes,
        "reason": lambda: [{"r_reason_sk": n, "r_reason_desc": f"reason {n}"} for n in range(1, 36)],
        "promotion": lambda: _promotions(chance),
        "call_center": _call_centers,
        "catalog_page": lambda: [
            {"cp_catalog_page_sk": n, **_id("cp_catalog_page", n)} for n in range(1, 13)
        ],
        "web_page": _web_pages,
        "web_site": _web_sites,
    }
    for table, make in makers.items():
        made[table] = completed(make(), schema[table], chance)
    return Dimensions(made)


def day_key(day: datetime.date) -> int:
    return day.toordinal() + _JULIAN


def _days() -> list[Row]:
    count = (LAST_DAY - FIRST_DAY).days + 1
    return [_day(FIRST_DAY + datetime.timedelta(days=n)) for n in range(count)]


def _day(day: datetime.date) -> Row:
    quarter = (day.month - 1) // 3 + 1
    weekend = day.isoweekday() > 5
    return {
        "d_date_sk": day_key(day),
        "d_date_id": f"D{day_key(day):015}",
        "d_date": day,
        "d_month_seq": (day.year - 1900) * 12 + day.month - 1,
        "d_week_seq": (day.toordinal() - datetime.date(1899, 12, 31).toordinal()) // 7 + 1,
        "d_quarter_seq": (day.year - 1900) * 4 + quarter - 1,
        "d_year": day.year,
        "d_dow": day.isoweekday() % 7,
        "d_moy": day.month,
        "d_dom": day.day,
        "d_qoy": quarter,
        "d_fy_year": day.year,
        "d_day_name": day.strftime("%A"),
        "d_quarter_name": f"{day.year}Q{quarter}",
        "d_holiday": "N",
        "d_weekend": "Y" if weekend else "N",
    }


def _times() -> list[Row]:
    """Every quarter of an hour."""
    return [_time(hour, minute) for hour, minute in itertools.product(range(24), (0, 15, 30, 45))]


def _time(hour: int, minute: int) -> Row:
    second = hour * 3600 + minute * 60
    meal = (
        "breakfast"
        if 6 <= hour <= 8
        else "lunch"
        if 11 <= hour <= 13
        else "dinner"
        if 17 <= hour <= 20
        else None
    )
    return {
        "t_time_sk": second,
        "t_time_id": f"T{second:015}",
        "t_time": second,
        "t_hour": hour,
        "t_minute": minute,
        "t_second": 0,
        "t_am_pm": "AM" if hour < 12 else "PM",
        "t_meal_time": meal,
    }


def _income_bands() -> list[Row]:
    return [
        {"ib_income_band_sk": n, "ib_lower_bound": (n - 1) * 10_000 + (n > 1), "ib_upper_bound": n * 10_000}
        for n in range(1, 21)
    ]


def _customer_demographics(chance: random.Random) -> list[Row]:
    education = (
        "Primary",
        "Secondary",
        "College",
        "2 yr Degree",
        "4 yr Degree",
        "Advanced Degree",
        "Unknown",
    )
    return [
        {
            "cd_demo_sk": n,
            "cd_gender": gender,
            "cd_marital_status": marital,
            "cd_education_status": degree,
            "cd_purchase_estimate": chance.randrange(500, 10_500, 500),
            "cd_credit_rating": chance.choice(["Low Risk", "Good", "High Risk", "Unknown"]),
            "cd_dep_count": chance.randrange(7),
            "cd_dep_employed_count": chance.randrange(7),
            "cd_dep_college_count": chance.randrange(7),
        }
        for n, (gender, marital, degree) in enumerate(itertools.product("MF", "MSDWU", education), start=1)
    ]


def _household_demographics(chance: random.Random) -> list[Row]:
    potentials = (">10000", "Unknown", "0-500", "501-1000", "1001-5000", "5001-10000")
    return [
        {
            "hd_demo_sk": n,
            "hd_income_band_sk": chance.choice([chance.randint(1, 20), chance.randint(5, 8)]),
            "hd_buy_potential": potential,
            "hd_dep_count": dependents,
            "hd_vehicle_count": vehicles,
        }
        for n, (potential, dependents, vehicles) in enumerate(
            itertools.product(potentials, range(10), (0, 1, 3)), start=1
        )
    ]


def _warehouses() -> list[Row]:
    states = ("TN", "TN", "GA", "AL", "SD")
    return [
        {
            "w_warehouse_sk": n,
            **_id("w_warehouse", n),
            "w_warehouse_name": f"Conventional childr no. {n}",
            "w_warehouse_sq_ft": 100_000 * n + 7,
            "w_state": state,
        }
        for n, state in enumerate(states, start=1)
    ]


def _ship_modes() -> list[Row]:
    kinds, carriers = (
        ("EXPRESS", "OVERNIGHT", "REGULAR", "TWO DAY", "LIBRARY"),
        ("DHL", "BARIAN", "UPS", "FEDEX"),
    )
    return [
        {"sm_ship_mode_sk": n, "sm_type": kind, "sm_carrier": carrier}
        for n, (kind, carrier) in enumerate(itertools.product(kinds, carriers), start=1)
    ]


def _promotions(chance: random.Random) -> list[Row]:
    channels = ("dmail", "email", "catalog", "tv", "radio", "press", "event", "demo")
    return [
        {"p_promo_sk": n, **_id("p_promo", n), "p_cost": cents(1000), "p_channel_tv": "N" if n % 3 else "Y"}
        | {f"p_channel_{c}": chance.choice("NNY") for c in channels if c != "tv"}
        for n in range(1, 16)
    ]


def _call_centers() -> list[Row]:
    counties = ("Williamson County", "Williamson County", "Ziebach County", "Williamson County")
    return [
        {
            "cc_call_center_sk": n,
            **_id("cc_call_center", n),
            "cc_name": f"call center {_NAMES[n % 3]}",
            "cc_manager": f"manager {n}",
            "cc_county": county,
        }
        for n, county in enumerate(counties, start=1)
    ]


def _web_pages() -> list[Row]:
    return [
        {"wp_web_page_sk": n, **_id("wp_web_page", n), "wp_char_count": 5000 + 50 * n if n % 2 else 3000 + n}
        for n in range(1, 9)
    ]


def _web_sites() -> list[Row]:
    return [
        {
            "web_site_sk": n,
            **_id("web_site", n),
            "web_name": f"site_{(n - 1) // 2}",
            "web_company_name": "pri" if n % 2 else _NAMES[n],
        }
        for n in range(1, 7)
    ]


def _id(prefix: str, number: int) -> dict[str, Any]:
    return {f"{prefix}_id": f"{prefix.upper()[:4]:A<8}{number:08}"}
