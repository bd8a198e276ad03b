"""Shapes of secrets that the table did not know when this list was written: what it does on the unknown.

The list was written before any rule for it. A third of it is marked by `KEPT_UNSEEN`: for these no rule was added
after the first count either, so they keep measuring what the general rules do on shapes that nobody taught them. The
facts (prefixes, alphabets, lengths) are those of gitleaks, trufflehog and detect-secrets; values are made up, and put
together from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

HEX = "7c3e9a0b5d21f486"
MIX = "k7Qz2WpX9dLb4RtM"
UP = "K7QZ2WPX9DLB4RTM"
LOW = "k7qz2wpx9dlb4rtm"
UUID = "7c3e9a0b-5d21-4f86-9c0e-1b2a3d4f5e60"

SHAPES: dict[str, str] = {
    # A prefix or a frame of their own.
    "adafruit io": "aio_" + "kQzW72pXdL9bRt4MkQzW72pXdLqA",
    "apify": "apify_" + "api_" + MIX * 2 + "k7Qz",
    "asana personal token": "2/" + "1204567890123456/1204567890123457:" + HEX * 2,
    "axiom": "xaat-" + UUID,
    "azure devops": MIX * 4 + "k7Qz2WpX9dLbJQQJ99" + "AZDO" + "k7Qz",
    "azure function": MIX * 2 + "k7Qz2WpX9dLb" + "AzFu" + "k7Qz==",
    "baidu cloud": "bce-v3/" + "ALTAK-" + MIX + "k7Qz2/" + HEX * 2 + "7c3e9a0b",
    "browserbase": "bb_live_" + MIX + "k7Qz2WpX9dL",
    "checkly": "cu_" + HEX * 2,
    "confluent cloud": "cflt" + MIX * 3 + "k7Qz2WpX9dLb",
    "crates.io": "cio" + MIX * 2,
    "cursor": "key_" + HEX * 4,
    "daytona": "dtn_" + HEX * 4,
    "dbt cloud": "dbtu_" + MIX * 2 + "k7Qz",
    "deno deploy": "ddp_" + MIX * 2 + "k7Qz",
    "depot": "depot_" + "org_" + MIX * 3,
    "digitalocean spaces": "DO00" + UP,
    "dropbox long-lived": "k7Qz2WpX9dL" + "AAAAAAAAAA" + MIX * 2 + "k7Qz2WpX9dL",
    "elevenlabs": "sk_" + HEX * 3,
    "endor labs": "endr+" + MIX,
    "facebook app token": "123456789012345" + "|" + MIX + "k7Qz2WpX9dL",
    "fal": UUID + ":" + HEX * 2,
    "fleetbase": "flb_live_" + MIX + "k7Qz",
    "flutterwave public": "FLWPUBK_TEST-" + HEX * 2 + "-X",
    "ghost admin": HEX + "7c3e9a0b:" + HEX * 4,
    "google ai studio, new": "AQ." + "Ab8" + MIX * 3,
    "honeycomb ingest": "hcaik_" + LOW * 4,
    "infisical service token": "st." + HEX + "7c3e9a0b." + HEX * 2 + "." + HEX * 2,
    "intercom": "dG9rOg" + "pr" + MIX * 3 + "=",
    "jsr": "jsrp_" + MIX * 2 + "k7Qz",
    "klaviyo private": "pk_" + HEX * 2 + "7c",
    "llamacloud": "llx-" + MIX * 3,
    "mailersend": "mlsn." + HEX * 4,
    "mailgun signing key": HEX * 2 + "-7c3e9a0b-5d21f486",
    "mercury": "secret-token:" + "mercury_production_wma_" + MIX * 2 + "k7Qz2WpX9dL_yrucrem",
    "metabase": "mb_" + MIX * 2 + "k7Qz2WpX9dLb=",
    "modal": "ak-" + MIX + "k7Qz2W and as-" + MIX + "k7Qz2W",
    "ngrok": "2" + MIX + "k7Qz2WpX9d_" + "5" + MIX + "k7Qz",
    "nightfall": "NF-" + MIX * 2,
    "onfido": "api_live." + MIX[:11] + "." + MIX * 2,
    "packagist": "packagist_" + "uut_" + HEX * 4 + "7c3e",
    "paddle": "pdl_live_apikey_" + LOW + "k7qz2wpx9d_" + MIX + "k7Qz2W_k7Q",
    "pagerduty": "Token token=" + "u+" + MIX + "k7",
    "paypal braintree": "access_token$" + "production$" + LOW + "$" + HEX * 2,
    "pinecone": "pcsk_" + "k7Qz2W_" + MIX * 3 + "k7Qz2WpX9dLb4Rt",
    "portainer": "ptr_" + MIX * 2 + "k7Qz2WpX9dL=",
    "pubnub": "sec-c-" + MIX * 3,
    "ramp": "ramp_sec_" + MIX * 3,
    "razorpay": "rzp_live_" + "k7Qz2WpX9dLb4R",
    "rootly": "rootly_" + HEX * 4,
    "runpod": "rpa_" + UP * 2 + "K7QZ2WPX9DLk7q",
    "salesforce session": "00D" + "5g000004k7Qz" + "!" + "AQ4AQ" + MIX * 5 + "k7Qz2WpX9dL",
    "scaleway access key": "SCW" + UP + "K",
    "sidekiq": "https://" + "7c3e9a0b:5d21f486" + "@gems.contribsys.com/",
    "sourcegraph gateway": "sgd_" + HEX * 4,
    "stripe payment intent": "pi_" + MIX + "k7Qz2WpX" + "_secret_" + MIX + "k7Qz2WpX9",
    "stytch": "secret-live-" + MIX * 2 + "k7Q=",
    "tencent cloud": "AKID" + MIX * 2,
    "twitter bearer": "A" * 22 + MIX * 5 + "%3D" + MIX[:6],
    "vercel": "vcp_" + MIX * 3 + "k7Qz2WpX",
    "voiceflow": "VF.DM." + HEX + "7c3e9a0b." + MIX,
    "volcengine": "AKLT" + MIX * 2 + "k7Qz2WpX9dLb",
    "wandb": "wandb_v1_" + MIX * 4,
    "woocommerce": "cs_" + HEX * 2 + "7c3e9a0b",
    "yandex oauth": "y0_" + "AgAAAAA" + MIX * 3,
    "yandex storage": "YCA" + "JE" + MIX * 2 + "k7Q",
    "zapier webhook": "https://hooks.zapier.com/hooks/catch/" + "1234567/k7qz2wp/",
    "zhipu": HEX * 2 + "." + MIX,
    # Known by a name in front.
    "algolia": "ALGOLIA_ADMIN_KEY: " + HEX * 2,
    "cloudflare global": 'X-Auth-Key": "' + HEX * 2 + '7c3e9"',
    "codecov": "CODECOV_TOKEN=" + UUID,
    "cohere": "CO_API_KEY=" + MIX * 2 + "k7Qz2WpX",
    "datadog": "DD_APP_KEY=" + HEX * 2 + "7c3e9a0b",
    "deepl": "DEEPL_AUTH_KEY=" + UUID + ":fx",
    "gitlab session": "Cookie: _gitlab_session=" + HEX * 2,
    "ibm cos": "cos_hmac_secret_access_key = '" + HEX * 3 + "'",
    "kubernetes secret": "kind: Secret\ndata:\n  password: " + "aHVudGVyMmh1bnRlcjI=",
    "nuget": '<add key="ClearTextPassword" value="' + 'hunter2hunter2!" />',
    "okta": "okta_token: " + "00" + MIX * 2 + "k7Qz2WpX",
    "sidekiq setting": "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=" + "7c3e9a0b:5d21f486",
    "snyk": "SNYK_TOKEN=" + UUID,
    "curl user": "curl -u admin:" + "s3cr3tpw99 https://example.org/api",
    "sshpass": "sshpass -p '" + "s3cr3tpw99' ssh root@host",
    "mysql": "mysql -u root -p" + "s3cr3tpw99 app",
}

KEPT_UNSEEN = frozenset(sorted(SHAPES)[::3])
"""Chosen by the alphabet before the first count."""
