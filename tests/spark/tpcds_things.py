"""Items and stores: the categories, colours, prices, managers, cities and markets that the queries name."""

from __future__ import annotations

import random

from tests.spark.tpcds_people import STORE_ZIP
from tests.spark.tpcds_rows import Row, cents

_CLASSES = {
    "Books": ("reference", "self-help", "computers", "history"),
    "Children": ("infants", "toddlers"),
    "Electronics": ("personal", "portable", "stereo"),
    "Home": ("bedding", "tables"),
    "Jewelry": ("birdal", "rings"),
    "Men": ("pants", "shirts", "accessories"),
    "Music": ("classical", "rock"),
    "Shoes": ("athletic", "mens"),
    "Sports": ("football", "golf"),
    "Women": ("fragrances", "maternity", "dresses"),
}
_BRANDS = (
    *("scholaramalgamalg #14", "scholaramalgamalg #7", "exportiunivamalg #9", "scholaramalgamalg #9"),
    *("amalgimporto #1", "edu packscholar #1", "exportiimporto #1", "importoamalg #1"),
)
_COLORS = (
    "peach", "slate", "blanched", "burnished", "purple", "burlywood", "indian", "spring", "floral", "medium",
    "powder", "khaki", "brown",
)  # fmt: skip
_UNITS = ("Ounce", "Oz", "Bunch", "Ton", "Dozen", "Box", "Pound", "Each")
_SIZES = ("medium", "extra large", "N/A", "small", "petite", "large")

_WANTED_ITEMS: tuple[tuple[int, Row], ...] = (
    (3, {"i_manufact_id": 128}),  # 3
    (4, {"i_current_price": 97.5}),  # 6, 80
    (4, {"i_manager_id": 8}),  # 19
    (9, {"i_current_price": 1.19}),  # 21, 40
    (4, {"i_color": "peach"}),  # 24
    (3, {"i_manufact_id": 977}),  # 32
    (3, {"i_manufact_id": 350}),  # 92
    (4, {"i_category": "Electronics", "i_class": "portable"}),  # 33
    (3, {"i_manufact_id": 677, "i_current_price": 75.0}),  # 37
    (3, {"i_manufact_id": 129, "i_current_price": 75.0}),  # 82
    (3, {"i_manufact_id": 741, "i_category": "Women", "i_color": "powder", "i_units": "Oz", "i_size": "medium"}),  # 41
    (3, {"i_manufact_id": 750, "i_category": "Men", "i_color": "floral", "i_units": "Dozen", "i_size": "petite"}),  # 41
    (5, {"i_manager_id": 1}),  # 42, 52, 71
    (3, {"i_manager_id": 28}),  # 55
    (4, {"i_category": "Books", "i_class": "reference", "i_brand": "scholaramalgamalg #14"}),  # 53, 63, 75
    (3, {"i_category": "Women", "i_class": "fragrances", "i_brand": "amalgimporto #1"}),  # 53, 63
    (4, {"i_category": "Women", "i_class": "maternity"}),  # 54
    (4, {"i_color": "slate"}),  # 56
    (4, {"i_category": "Music"}),  # 60
    (4, {"i_category": "Jewelry"}),  # 61
    (5, {"i_color": "purple", "i_current_price": 70.0}),  # 64
    (4, {"i_category": "Men", "i_class": "shirts"}),  # 89
    (4, {"i_category": "Sports", "i_class": "football"}),  # 12, 20, 89, 98
)  # fmt: skip

_PLAIN_ITEMS = 25


def items(chance: random.Random) -> list[Row]:
    wanted = [values for count, values in _WANTED_ITEMS for _ in range(count)]
    return [_item(n, values, chance) for n, values in enumerate(wanted + [{}] * _PLAIN_ITEMS, start=1)]


def _item(number: int, values: Row, chance: random.Random) -> Row:
    category = values.get("i_category") or chance.choice(list(_CLASSES))
    chosen: Row = {
        "i_class": chance.choice(_CLASSES[category]),
        "i_brand": chance.choice(_BRANDS),
        "i_manufact_id": chance.randint(1, 30),
        "i_color": chance.choice(_COLORS),
        "i_units": chance.choice(_UNITS),
        "i_size": chance.choice(_SIZES),
        "i_current_price": round(chance.uniform(2, 60), 2),
        "i_manager_id": chance.choice([1, 8, 28, 33, 40]),
    } | values
    return chosen | {
        "i_item_sk": number,
        # Every third item is a new version of the one before it.
        "i_item_id": f"ITEMAAAA{number - (number % 3 == 0):08}",
        "i_item_desc": f"A rather useful thing, the {number - (number % 3 == 0)}th of its kind",
        "i_current_price": cents(chosen["i_current_price"]),
        "i_wholesale_cost": cents(chosen["i_current_price"] * 0.6),
        "i_brand_id": 1_001_000 + _BRANDS.index(chosen["i_brand"]),
        "i_class_id": 1 + _CLASSES[category].index(chosen["i_class"]),
        "i_category_id": 1 + list(_CLASSES).index(category),
        "i_category": category,
        "i_manufact": f"manufact {chosen['i_manufact_id']}",
        "i_product_name": f"product {number}",
    }


def stores(chance: random.Random) -> list[Row]:
    return [_store(n, chance) for n in range(1, 13)]


def _store(number: int, chance: random.Random) -> Row:
    odd = number % 2 == 1
    return {
        "s_store_sk": number,
        "s_store_id": f"STOREAAA{number:08}",
        "s_store_name": ("ese", "ought", "able", "pri")[number % 4],
        "s_number_employees": chance.randint(200, 295) if number % 3 else 310,
        "s_market_id": 8 if odd else chance.randint(1, 7),
        "s_company_id": 1,
        "s_company_name": "Unknown",
        "s_city": ("Midway", "Fairview", "Oak Grove")[number % 3],
        "s_county": "Williamson County" if number <= 8 else ("Orange County", "Bronx County")[number % 2],
        "s_state": "TN" if number <= 9 else ("GA", "AL", "SD")[number % 3],
        "s_zip": STORE_ZIP if odd else ("31904", "35709")[number % 4 // 2],
        "s_country": "United States",
        "s_gmt_offset": -5 if number != 7 else -6,
    }
