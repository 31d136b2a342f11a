"""What customers do so that every query has an answer: sales, returns and stock that meet the literals of the queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.spark.tpcds_people import HERMITS, STORE_ZIP, WHALES
from tests.spark.tpcds_rows import Where, between

Channel = Literal["store", "catalog", "web"]
CHANNELS: tuple[Channel, ...] = ("store", "catalog", "web")
Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Return:
    """The goods come back: on a day that meets `where`, or a number of days after the sale."""

    where: Where = field(default_factory=dict)
    after: tuple[int, int] = (1, 90)
    amounts: Mapping[str, Bounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sale:
    """One ticket or order; what is not said is drawn at random."""

    channel: Channel
    where: Where = field(default_factory=dict)
    """Conditions on the rows of any small table that the sale refers to."""
    amounts: Mapping[str, Bounds] = field(default_factory=dict)
    """Bounds of columns without their prefix; the other amounts follow from quantity and price."""
    lines: int = 1
    shipped: tuple[int, int] = (1, 130)
    returned: Return | None = None
    stock: tuple[int, int] | None = None
    """The item is in stock in that week, with a quantity between these."""
    no_address: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """Sales to one customer of one item, told several times with other customers and items."""

    sales: tuple[Sale, ...]
    customer: Where = field(default_factory=dict)
    """Conditions on the customer, the home address and the current demographics."""
    item: Where = field(default_factory=dict)
    times: int = 9
    same_day: bool = False


def _year(year: int, *months: int) -> Where:
    return {"d_year": year} | ({"d_moy": frozenset(months)} if months else {})


def _days(first: str, last: str) -> Where:
    return {"d_date": between(first, last)}


def _everywhere(when: Where, where: Where | None = None) -> tuple[Sale, ...]:
    return tuple(Sale(channel, {**when, **(where or {})}) for channel in CHANNELS)


_BACK = Return()
_SOON = Return(after=(1, 6))
_COLLEGE = {"cd_gender": "M", "cd_marital_status": "S", "cd_education_status": "College"}
_WEEK = between("2000-01-03", "2000-01-07")
_RETURN_WEEKS = frozenset(between("2000-06-28", "2000-06-29") + between("2000-09-26", "2000-11-16"))
_BIG = {"quantity": (60, 100), "list_price": (150, 190), "sales_price": (140, 150), "net_profit": (10, 900)}
_YEARLY: dict[Channel, tuple[int, int]] = {"store": (60, 5), "web": (20, 40), "catalog": (5, 90)}
_QUARTERLY: dict[Channel, tuple[int, int, int]] = {"store": (4000, 3000, 2000), "web": (500, 4000, 30_000)}
_RETURNED_IN: dict[Channel, int] = {"web": 2002, "catalog": 2000}
_GROWTH = tuple(
    Sale(channel, _year(year), {"quantity": (quantity, quantity + 2), "sales_price": (40, 50), "list_price": (60, 70)})
    for channel, quantities in _YEARLY.items()
    for year, quantity in zip((2001, 2002), quantities, strict=True)
)  # fmt: skip
_RISE = tuple(
    Sale(channel, {"d_year": 2000, "d_qoy": quarter}, {"ext_sales_price": (amount, amount + 9)})
    for channel, amounts in _QUARTERLY.items()
    for quarter, amount in enumerate(amounts, start=1)
)

STORIES: tuple[Story, ...] = (
    # 1: customers who return much
    Story((Sale("store", {**_year(2000), "s_state": "TN"}, returned=_BACK),), times=40),
    # 3, 19, 42, 52, 55, 61, 71: November
    Story((Sale("store", {"d_moy": 11}),), item={"i_manufact_id": 128}),
    Story((Sale("store", _year(1998, 11)),), item={"i_manager_id": 8}),
    Story((Sale("store", _year(2000, 11)),), item={"i_manager_id": 1}),
    Story((Sale("store", _year(1999, 11)),), item={"i_manager_id": 28}),
    Story((Sale("store", {**_year(1998, 11), "s_gmt_offset": -5, "p_channel_dmail": "Y"}),), {"ca_gmt_offset": -5}, {"i_category": "Jewelry"}),
    Story(_everywhere(_year(1999, 11), {"t_meal_time": {"breakfast", "dinner"}}), item={"i_manager_id": 1}),
    # 4, 11, 74: more by catalog than on the web than in stores; 31: the same by county
    Story(_GROWTH, times=12),
    Story(_RISE, times=18),
    # 5, 77, 80: late summer of 2000
    *(
        Story((Sale(channel, {**_days("2000-08-23", "2000-08-31"), "p_channel_tv": "N"}, returned=_SOON),), item={"i_current_price": (51, 99)})
        for channel in CHANNELS
    ),
    # 6: dear things bought from one state
    Story((Sale("store", _year(2001, 1)),), {"ca_state": "GA"}, {"i_current_price": (90, 99)}, times=28),
    # 7, 26, 27: single students
    Story((Sale("store", {**_year(2000), **_COLLEGE}),)),
    Story((Sale("catalog", {**_year(2000), **_COLLEGE}),)),
    Story((Sale("store", {**_year(2002), **_COLLEGE, "s_state": "TN"}),)),
    # 8, 24: stores near home
    Story((Sale("store", {"d_year": 1998, "d_qoy": 2, "s_zip": STORE_ZIP}),)),
    Story((Sale("store", {"s_zip": STORE_ZIP, "s_market_id": 8}, returned=_BACK),), {"ca_zip": STORE_ZIP, "c_birth_country": "CHILE"}, {"i_color": "peach"}),
    # 10, 35: in stores and on the web
    Story((Sale("store", _year(2002, 1, 2, 3, 4)), Sale("web", _year(2002, 1, 2, 3, 4))), {"ca_county": "Rush County"}),
    # 12, 20, 98: sports
    Story(_everywhere(_days("1999-02-22", "1999-03-24")), item={"i_category": "Sports"}),
    # 13, 48, 85: combinations of people, prices and profits
    Story((Sale("store", {**_year(2001), "cd_marital_status": "M", "cd_education_status": "Advanced Degree", "hd_dep_count": 3, "ca_state": {"TX", "OH", "KY", "VA"}}, {"sales_price": (100, 150), "net_profit": (150, 200)}),)),
    Story((Sale("store", {**_year(2000), "cd_marital_status": "M", "cd_education_status": "4 yr Degree", "ca_state": {"KY", "OR", "MN"}}, {"sales_price": (100, 150), "net_profit": (150, 2000)}),)),
    Story((Sale("web", {**_year(2000), "cd_marital_status": "M", "cd_education_status": "Advanced Degree", "ca_state": {"KY", "CT", "WI"}}, {"sales_price": (110, 140), "net_profit": (150, 300)}, returned=_BACK),)),
    # 14: sold everywhere, and much of it
    Story(_everywhere(_year(2001, 11)), times=5),
    *(Story((Sale(channel, _year(2001, 11), {"quantity": (80, 100), "list_price": (150, 199)}),), times=6) for channel in CHANNELS),
    # 15, 45: the west, in spring
    Story((Sale("catalog", {"d_year": 2001, "d_qoy": 2}), Sale("web", {"d_year": 2001, "d_qoy": 2})), {"ca_zip": "85669"}),
    # 16, 94, 95: orders from several warehouses
    Story((Sale("catalog", {**_days("2002-02-01", "2002-03-10"), "ca_state": "GA", "cc_county": "Williamson County"}, lines=2, shipped=(1, 20)),)),
    Story((Sale("web", {**_days("1999-02-01", "1999-03-10"), "ca_state": "IL", "web_company_name": "pri"}, lines=2, shipped=(1, 20)),)),
    Story((Sale("web", {**_days("1999-02-01", "1999-03-10"), "ca_state": "IL", "web_company_name": "pri"}, lines=2, shipped=(1, 20), returned=_BACK),)),
    # 17, 25, 29: bought, returned, and bought again by catalog
    Story((Sale("store", {"d_quarter_name": "2001Q1"}, returned=_BACK), Sale("catalog", {"d_quarter_name": "2001Q2"}), Sale("catalog", {"d_quarter_name": "2001Q3"}))),
    Story((Sale("store", _year(2001, 4), returned=_BACK), Sale("catalog", _year(2001, *range(4, 11))))),
    Story((Sale("store", _year(1999, 9), returned=Return(after=(1, 60))), Sale("catalog", {"d_year": {1999, 2000, 2001}}))),
    # 18: catalog customers of 1998
    Story((Sale("catalog", {**_year(1998), "cd_gender": "F", "cd_education_status": "Unknown"}),), {"ca_state": "MS", "c_birth_month": 6}),
    # 21, 40: cheap things around a day; 22, 37, 82: stock
    Story((Sale("catalog", _days("2000-02-15", "2000-03-10"), stock=(400, 480)), Sale("catalog", _days("2000-03-13", "2000-04-08"), stock=(410, 490), returned=_BACK)), item={"i_current_price": (0.99, 1.49)}, times=24),
    Story((Sale("catalog", _days("2000-02-03", "2000-03-28"), stock=(100, 500)),), item={"i_manufact_id": 677}),
    Story((Sale("store", _days("2000-05-28", "2000-07-20"), stock=(100, 500)),), item={"i_manufact_id": 129}),
    # 23: the best customers buy what sells best
    Story(
        (
            *(Sale("store", _days("2000-05-05", "2000-05-05"), {"quantity": (99, 100), "sales_price": (150, 160), "list_price": (160, 170)}) for _ in range(3)),
            Sale("catalog", _year(2000, 2)),
            Sale("web", _year(2000, 2)),
        ),
        {"c_birth_country": WHALES},
        {"i_manager_id": 28, "i_current_price": (1, 40)},
        times=14,
    ),
    # 28: buckets of quantities and prices
    *(Story((Sale("store", amounts={"quantity": (n, n + 4), "wholesale_cost": (w + 1, w + 19)}),), times=4) for n, w in ((1, 57), (6, 31), (11, 79), (16, 38), (21, 17), (26, 7))),
    # 30, 81: returns from Georgia, some of them large
    *(
        Story((Sale(channel, _year(year, *range(1, 9)), {"quantity": quantity}, returned=_BACK),), {"ca_state": "GA"}, times=12)
        for channel, year in _RETURNED_IN.items()
        for quantity in ((2, 20), (90, 100))
    ),
    # 32, 92: great discounts
    Story((Sale("catalog", _days("2000-01-27", "2000-04-26")),), item={"i_manufact_id": 977}, times=20),
    Story((Sale("web", _days("2000-01-27", "2000-04-26")),), item={"i_manufact_id": 350}, times=20),
    # 33, 56, 60: one month, all channels
    Story(_everywhere(_year(1998, 5), {"ca_gmt_offset": -5}), item={"i_category": "Electronics"}),
    Story(_everywhere(_year(2001, 2), {"ca_gmt_offset": -5}), item={"i_color": "slate"}),
    Story(_everywhere(_year(1998, 9), {"ca_gmt_offset": -5}), item={"i_category": "Music"}),
    # 34, 73: large and small tickets
    Story((Sale("store", {"d_year": {1999, 2000, 2001}, "d_dom": (25, 28), "hd_buy_potential": ">10000", "hd_vehicle_count": 1, "hd_dep_count": (2, 9), "s_county": "Williamson County"}, lines=17),), times=10),
    Story((Sale("store", {"d_year": {1999, 2000, 2001}, "d_dom": (1, 2), "hd_buy_potential": "Unknown", "hd_vehicle_count": 1, "hd_dep_count": (2, 9), "s_county": {"Williamson County", "Orange County"}}, lines=2),), times=10),
    # 38, 97: the same day and the same thing in all channels
    Story(_everywhere(_year(2000)), same_day=True, times=12),
    # 44: one store, and nobody knows where the customers live
    Story((Sale("store", {"s_store_sk": 4}, {"net_profit": (-900, -100)}, no_address=True),)),
    Story((Sale("store", {"s_store_sk": 4}, {"net_profit": (10, 900)}),), times=25),
    # 46, 68, 79: bought away from home
    Story((Sale("store", {"d_year": {1999, 2000, 2001}, "d_dow": {0, 6}, "s_city": {"Fairview", "Midway"}, "hd_dep_count": 4, "ca_city": "Midway"}),), {"ca_city": "Edgewood"}),
    Story((Sale("store", {"d_year": {1999, 2000, 2001}, "d_dom": (1, 2), "s_city": {"Fairview", "Midway"}, "hd_vehicle_count": 3, "ca_city": "Midway"}),), {"ca_city": "Edgewood"}),
    Story((Sale("store", {"d_year": {1999, 2000, 2001}, "d_dow": 1, "hd_vehicle_count": 3, "s_number_employees": (200, 295)}),)),
    # 47, 57, 53, 63, 89: months and quarters that differ
    Story(tuple(Sale("store", {**_year(1999, month), "s_store_sk": 2}) for month in (3, 4, 5)), item={"i_class": "reference"}),
    Story(tuple(Sale("catalog", {**_year(1999, month), "cc_call_center_sk": 1}) for month in (3, 4, 5)), item={"i_class": "reference"}),
    Story(tuple(Sale("store", _year(2000, month)) for month in (2, 5, 8)), item={"i_class": "reference", "i_brand": "scholaramalgamalg #14"}),
    Story(tuple(Sale("store", {**_year(1999, month), "s_store_sk": 3}) for month in (2, 5, 8)), item={"i_class": "shirts"}),
    # 49: dear returns
    *(
        Story((Sale(channel, _year(2001, 12), _BIG, returned=Return(after=(1, 30), amounts={"return_amt": (10_001, 15_000)})),), times=5)
        for channel in CHANNELS
    ),
    # 50: returned in August
    Story((Sale("store", _year(2001, 3, 4, 5, 6, 7), returned=Return(_year(2001, 8))),), times=14),
    # 51: the web overtakes the store
    Story((Sale("store", _year(2000, 2), {"sales_price": (1, 5)}), Sale("web", _year(2000, 3), {"sales_price": (150, 190)})), item={"i_category": "Music"}),
    # 54: clothes at Christmas, then in the store nearby
    Story((Sale("catalog", _year(1998, 12)), Sale("store", _year(1999, 1, 2, 3))), {"ca_county": "Williamson County", "ca_state": "TN"}, {"i_class": "maternity"}),
    # 58: one week, equal revenues; 83: returns of three weeks
    Story(
        tuple(Sale(channel, {"d_date": _WEEK}, {"ext_sales_price": (1000, 1020)}) for channel in CHANNELS),
        times=32,
    ),
    Story(tuple(Sale(channel, _year(2000, 3, 4, 5), returned=Return({"d_date": _RETURN_WEEKS})) for channel in CHANNELS)),
    # 62, 66, 99: shipping
    Story((Sale("web", {**_year(2001), "t_time": (31_000, 59_000), "sm_carrier": {"DHL", "BARIAN"}}), Sale("catalog", {**_year(2001), "t_time": (31_000, 59_000), "sm_carrier": {"DHL", "BARIAN"}}))),
    # 64: two years running
    Story(
        (
            *(Sale("store", {**_year(year), "s_store_sk": 3, "cd_marital_status": "M"}, returned=_BACK) for year in (1999, 2000)),
            Sale("catalog", {}, {"ext_list_price": (9000, 9900)}, returned=Return(amounts={"refunded_cash": (1, 9), "reversed_charge": (1, 9), "store_credit": (1, 9)})),
        ),
        {"cd_marital_status": "S"},
        {"i_color": "purple", "i_current_price": (65, 74)},
        times=12,
    ),
    # 65: hardly any revenue
    Story((Sale("store", _year(1998), {"sales_price": (0.5, 1)}),), times=12),
    # 69: only in stores
    Story((Sale("store", _year(2001, 4, 5, 6)),), {"c_birth_country": HERMITS}, times=16),
    # 72: more ordered than in stock
    Story((Sale("catalog", {**_year(1999), "hd_buy_potential": ">10000", "cd_marital_status": "D"}, {"quantity": (60, 100)}, shipped=(8, 60), stock=(1, 50)),), times=14),
    # 75: books sell less than a year before
    Story((Sale("catalog", _year(2001), {"quantity": (80, 100)}), Sale("catalog", _year(2002), {"quantity": (2, 9)})), item={"i_category": "Books"}),
    # 78: the same thing in the store and on the web
    Story((Sale("store", _year(2000)), Sale("web", _year(2000)))),
    # 84, 93: returns of certain people and for a certain reason
    Story((Sale("store", {}, returned=_BACK),), {"ca_city": "Edgewood", "hd_income_band_sk": (5, 8)}),
    Story((Sale("store", {}, returned=Return({"r_reason_sk": 28})),)),
    # 88, 90, 96: hours
    *(Story((Sale("store", {"t_hour": hour, "hd_dep_count": {0, 2, 4}, "hd_vehicle_count": (0, 1), "s_store_name": "ese"}),)) for hour in (8, 9, 10, 11, 12)),
    Story((Sale("web", {"t_hour": {8, 9}, "hd_dep_count": 6, "wp_char_count": (5000, 5200)}), Sale("web", {"t_hour": {19, 20}, "hd_dep_count": 6, "wp_char_count": (5000, 5200)}))),
    Story((Sale("store", {"t_hour": 20, "t_minute": (30, 59), "hd_dep_count": 7, "s_store_name": "ese"}),)),
    # 91: returned to a call center
    Story((Sale("catalog", _year(1998, 9, 10), returned=Return(_year(1998, 11))),), {"ca_gmt_offset": -7, "hd_buy_potential": "Unknown", "cd_marital_status": {"M", "W"}, "cd_education_status": {"Unknown", "Advanced Degree"}}),
)  # fmt: skip
