"""The secrets that are recognised by their shape: a table of facts, one row per shape, and no code.

The facts (prefixes, alphabets, lengths) are those of the public rule lists, and of some vendors the commonly known
prefix (`VENDOR`); patterns and samples are our own. A sample is joined from pieces, so that no scanner reports this
file as a leak.

A pattern is tried only where a word begins, so it needs no anchor of its own. A word is defined in `long_words.py`: at
least 15 letters, digits, `_` and `-` in a row, with the text before its dots.
"""

from __future__ import annotations

from sessionlog.events.secrets.newer_rules import NEWER
from sessionlog.events.secrets.rule import DETECT, GITLEAKS, Rule
from sessionlog.events.secrets.rule import HEX as _HEX
from sessionlog.events.secrets.rule import MIX as _MIX

VERSION = 3
"""Raised with every change of a row; `sessionlog scrub --json` names it."""

DATE = "2026-11-22"
"""When the rule lists were read."""

RULES: tuple[Rule, ...] = (
    # Models and their gateways.
    Rule(
        "api-key-sk", "OpenAI, Anthropic, OpenRouter, DeepSeek and others: API key", "sk-",
        rb"sk-(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{20,}",
        positive=("sk-" + _MIX * 3, "sk-proj-" + "a_1-" * 10, "sk-ant-api03-" + "x" * 30),
        negative=("sk-" + "toggleable__label-arrow-of-a-page", "sk-short1", "task-12345678901234567890123"),
        source=GITLEAKS,
    ),
    Rule(
        "groq-api-key", "Groq: API key", "gsk_",
        rb"gsk_[A-Za-z0-9]{40,}",
        positive=("gsk_" + _MIX * 6 + "WGdy",),
        negative=("gsk_" + "short12345678901",),
    ),
    Rule(
        "xai-api-key", "xAI: API key", "xai-",
        rb"xai-[A-Za-z0-9]{60,}",
        positive=("xai-" + _MIX * 10,),
        negative=("xai-" + "research-and-products",),
    ),
    Rule(
        "replicate-token", "Replicate: API token", "r8_",
        rb"r8_[A-Za-z0-9]{30,}",
        positive=("r8_" + _MIX * 4 + "x1Y2z",),
        negative=("r8_" + "register_number_eight",),
    ),
    Rule(
        "perplexity-api-key", "Perplexity: API key", "pplx-",
        rb"pplx-[A-Za-z0-9]{32,}",
        positive=("pplx-" + _MIX * 6,),
        negative=("pplx-" + "70b-online-model",),
        source=GITLEAKS,
    ),
    Rule(
        "huggingface-token", "Hugging Face: access token", "hf_ api_org_",
        rb"(?:hf_|api_org_)[A-Za-z0-9]{30,}",
        positive=("hf_" + "a1B" * 11, "api_org_" + "a1B" * 11 + "c"),
        negative=("hf_" + "transformers_cache_folder",),
    ),
    # Clouds.
    Rule(
        "aws-access-key-id", "AWS: access key", "AKIA ASIA ABIA ACCA",
        rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9_])",
        positive=("AKIA" + "A1B2" * 4, "ASIA" + "A1B2" * 4),
        negative=("AKIA" + "2026", "AKIA" + "A1B2" * 5),
        source=GITLEAKS,
    ),
    Rule(
        "aws-bedrock-api-key", "AWS Bedrock: API key", "ABSK bedrock-api-key-",
        rb"(?:ABSK[A-Za-z0-9+/]{80,}|bedrock-api-key-[A-Za-z0-9+/]{30,})={0,2}",
        positive=("ABSK" + _MIX * 14 + "==", "bedrock-api-key-" + _MIX * 8),
        negative=("ABSK" + _MIX * 2,),
    ),
    Rule(
        "google-api-key", "Google: API key", "AIza",
        rb"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9])",
        positive=("AIza" + "a1-B_" * 7,),
        negative=("AIza" + "a1-B_" * 8,),
        source=GITLEAKS,
    ),
    Rule(
        "google-oauth-token", "Google: OAuth access token", "",
        rb"ya29\.[A-Za-z0-9_-]{20,}",
        positive=("ya29." + "a0Ab-" * 8,),
        negative=("ya29." + "short",),
        preceded_by="ya29.",
    ),
    Rule(
        "google-client-secret", "Google: OAuth client secret", "GOCSPX-",
        rb"GOCSPX-[A-Za-z0-9_-]{28}",
        positive=("GOCSPX-" + "a1-B" * 7,),
        negative=("GOCSPX-" + "your-secret",),
    ),
    Rule(
        "google-refresh-token", "Google: OAuth refresh token", "",
        rb"1//0[A-Za-z0-9_-]{30,}",
        positive=("1//" + "0gA1-" * 9,),
        negative=("1//" + "0123456789012345",),
        least=31, preceded_by="1//",
    ),
    Rule(
        "azure-client-secret", "Microsoft Entra: client secret", "",
        rb"[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}(?![A-Za-z0-9])",
        positive=("abc8" + "Q~" + "a1B2c3D4" * 3 + "a.b_c-d",),
        negative=("abc8" + "Q~" + "short",),
        source=GITLEAKS, least=15, preceded_by="Q~", back=6,
    ),
    Rule(
        "alibaba-access-key", "Alibaba Cloud: access key", "LTAI",
        rb"LTAI[A-Za-z0-9]{16,20}(?![A-Za-z0-9])",
        positive=("LTAI" + "a1B2c" * 4,),
        negative=("LTAI" + "a1B2c" * 6,),
        source=GITLEAKS,
    ),
    Rule(
        "digitalocean-token", "DigitalOcean: access or refresh token", "dop_v1_ doo_v1_ dor_v1_",
        rb"do[por]_v1_[0-9a-f]{64}",
        positive=("dop_v1_" + _HEX * 4, "doo_v1_" + _HEX * 4, "dor_v1_" + _HEX * 4),
        negative=("dop_v1_" + _HEX,),
        source=GITLEAKS,
    ),
    Rule(
        "cloudflare-origin-key", "Cloudflare: origin CA key", "",
        rb"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}",
        positive=("v1.0-" + "0a1b2c3d" * 3 + "-" + _HEX * 9 + "ab",),
        negative=("v1.0-" + "alpha-and-beta-release",),
        source=GITLEAKS, least=100, preceded_by="v1.",
    ),
    Rule(
        "databricks-token", "Databricks: access token", "dapi",
        rb"dapi[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])",
        positive=("dapi" + _HEX * 2, "dapi" + _HEX * 2 + "-2"),
        negative=("dapi" + "_of_the_data_plane",),
        source=GITLEAKS,
    ),
    Rule(
        "heroku-api-key", "Heroku: API key", "HRKU-",
        rb"HRKU-[A-Za-z0-9_-]{30,}",
        positive=("HRKU-AA" + _MIX * 7,),
        negative=("HRKU-" + "of-long-ago",),
    ),
    Rule(
        "fly-token", "Fly.io: access token", "fo1_ fm1a_ fm1r_ fm2_",
        rb"(?:fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3})",
        positive=("fo1_" + "a1-B" * 10 + "xyz", "fm2_" + _MIX * 13),
        negative=("fm2_" + _MIX * 2,),
        source=GITLEAKS,
    ),
    Rule(
        "planetscale-secret", "PlanetScale: token or password", "pscale_tkn_ pscale_oauth_ pscale_pw_",
        rb"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,64}",
        positive=("pscale_tkn_" + _MIX * 4, "pscale_oauth_" + _MIX * 5, "pscale_pw_" + _MIX * 4),
        negative=("pscale_tkn_" + "of_a_branch",),
        source=GITLEAKS,
    ),
    Rule(
        "supabase-key", "Supabase: secret key or access token", "sbp_ sb_secret_",
        rb"(?:sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,})",
        positive=("sbp_" + _HEX * 2 + "01234567", "sb_secret_" + _MIX * 3),
        negative=("sbp_" + "service_bus_partition",),
    ),
    # Code, packages, deployment.
    Rule(
        "github-token", "GitHub: token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rb"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
        positive=("ghp_" + "a1B2" * 9, "gho_" + "x" * 36, "ghs_" + "x" * 36, "github_pat_" + "a1_B" * 10),
        negative=("ghp_" + "short", "ghs_" + "of_a_long_function_name_here"),
    ),
    Rule(
        "gitlab-token",
        "GitLab: token",
        "glpat- gldt- glft- glsoat- glrt- glcbt- glimt- glptt- glagent- gloas- glffct- glwt- GR1348941",
        rb"(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct|wt)-"
        rb"|GR1348941)(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9]{2}\.[a-z0-9]{9})?",
        positive=(
            "glpat-" + "a1-B" * 6,
            "glrt-" + "a1-B" * 6,
            "GR1348941" + "a1-B" * 6,
            "glptt-" + _HEX * 3,
            "gloas-" + _MIX * 8,
        ),
        negative=("glrt-" + "short1", "glft-" + "a-name-of-many-little-words"),
        source=DETECT,
    ),
    Rule(
        "bitbucket-app-password", "Bitbucket: app password", "ATBB",
        rb"ATBB[A-Za-z0-9]{28,}(?![A-Za-z0-9])",
        positive=("ATBB" + _MIX * 4,),
        negative=("ATBB" + "a1B2c3D4e5F6",),
    ),
    Rule(
        "atlassian-token", "Atlassian: API token", "ATATT3 ATCTT3",
        rb"AT[AC]TT3[A-Za-z0-9_=-]{60,}",
        positive=("ATATT3" + "xFfGF0" * 30 + "=A1B2",),
        negative=("ATATT3" + "of-the-table",),
        source=GITLEAKS,
    ),
    Rule(
        "npm-token", "npm: access token", "npm_",
        rb"npm_[A-Za-z0-9]{36}",
        positive=("npm_" + "a1B2" * 9,),
        negative=("npm_" + "config_registry_of_the_user",),
        source=GITLEAKS,
    ),
    Rule(
        "pypi-token", "PyPI: upload token", "pypi-AgE",
        rb"pypi-AgE[A-Za-z0-9_-]{50,}",
        positive=("pypi-AgE" + "IcHlwaS5vcmc" + "a1-B" * 15,),
        negative=("pypi-" + "server-and-warehouse",),
        source=GITLEAKS,
    ),
    Rule(
        "docker-token", "Docker Hub: access token", "dckr_pat_ dckr_oat_",
        rb"dckr_[po]at_[A-Za-z0-9_-]{27,}",
        positive=("dckr_pat_" + "a1-B_" * 6, "dckr_oat_" + "a1-B_" * 7),
        negative=("dckr_pat_" + "short",),
    ),
    Rule(
        "artifactory-key", "JFrog Artifactory: API key or reference token", "AKCp cmVmd",
        rb"(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})(?![A-Za-z0-9])",
        positive=("AKCp" + _MIX * 8 + "a1B2c", "cmVmd" + _MIX * 7 + "a1B"),
        negative=("AKCp" + _MIX,),
        source=GITLEAKS,
    ),
    Rule(
        "clojars-token", "Clojars: deploy token", "CLOJARS_",
        rb"CLOJARS_[A-Za-z0-9]{60}",
        positive=("CLOJARS_" + _HEX * 3 + "abcdef012345",),
        negative=("CLOJARS_" + "USERNAME",),
        source=GITLEAKS,
    ),
    Rule(
        "openshift-token", "OpenShift: user token", "",
        rb"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
        positive=("sha256~" + "a1-B_" * 8 + "xyz",),
        negative=("sha256~" + "a1-B_" * 3,),
        source=GITLEAKS, least=43, preceded_by="sha256~",
    ),
    Rule(
        "vault-token", "HashiCorp Vault: token", "",
        rb"hv[sbr]\.[A-Za-z0-9_-]{24,}",
        positive=("hvs." + _MIX * 3, "hvb." + "a1-B" * 35),
        negative=("hvs." + "method_of_a_name",),
        least=24, preceded_by="hvs. hvb. hvr.",
    ),
    Rule(
        "doppler-token", "Doppler: token", "",
        rb"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[a-z0-9_-]{2,35})?)\.[A-Za-z0-9]{40,44}",
        positive=("dp.pt." + _MIX * 5 + "a1B", "dp.st.dev." + _MIX * 5 + "a1B"),
        negative=("dp.st." + "method_of_a_name",),
        source=GITLEAKS, least=40, preceded_by="dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", far="dp.st.",
    ),
    Rule(
        "octopus-api-key", "Octopus Deploy: API key", "API-",
        rb"API-(?=[A-Z0-9]{0,25}[0-9])[A-Z0-9]{26}(?![A-Za-z0-9])",
        positive=("API-" + "A1B2C" * 5 + "D",),
        negative=("API-" + "A1B2C" * 3,),
        source=GITLEAKS,
    ),
    Rule(
        "pulumi-token", "Pulumi: access token", "pul-",
        rb"pul-[0-9a-f]{40}",
        positive=("pul-" + _HEX * 2 + "01234567",),
        negative=("pul-" + "monary-function-tests",),
        source=GITLEAKS,
    ),
    Rule(
        "prefect-token", "Prefect: API key", "pnu_",
        rb"pnu_[A-Za-z0-9]{36}",
        positive=("pnu_" + _MIX * 4 + "a1B2",),
        negative=("pnu_" + "matic_actuators",),
        source=GITLEAKS,
    ),
    Rule(
        "postman-api-key", "Postman: API key", "PMAK-",
        rb"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
        positive=("PMAK-" + "0a1b2c3d" * 3 + "-" + _HEX * 2 + "ab",),
        negative=("PMAK-" + "0a1b2c3d" * 3,),
        source=GITLEAKS,
    ),
    Rule(
        "readme-api-key", "ReadMe: API key", "rdme_",
        rb"rdme_[a-z0-9]{70}",
        positive=("rdme_" + _HEX * 4 + "abc123",),
        negative=("rdme_" + "of_the_repository",),
        source=GITLEAKS,
    ),
    Rule(
        "age-secret-key", "age: secret key", "AGE-SECRET-KEY-1",
        rb"AGE-SECRET-KEY-1[0-9A-Z]{58}",
        positive=("AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 5 + "2TVDW0S3",),
        negative=("AGE-SECRET-KEY-1" + "QPZRY",),
        source=GITLEAKS,
    ),
    Rule(
        "1password-secret", "1Password: secret key or service account", "A3- ops_eyJ",
        rb"(?:A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}(?![A-Za-z"
        rb"0-9])|ops_eyJ[A-Za-z0-9+/]{200,}={0,3})",
        positive=("A3-" + "A1B2C3-D4E5F6G7H8I-A1B2C-A1B2C-A1B2C", "ops_eyJ" + _MIX * 32),
        negative=("A3-" + "PAPER-AND-OTHER-SIZES",),
        source=GITLEAKS,
    ),
    # Messages.
    Rule(
        "slack-token", "Slack: token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-",
        rb"xox[a-z]-(?=[A-Za-z0-9%-]{0,40}[0-9])[A-Za-z0-9%/+-]{10,}=*",
        positive=("xoxb-" + "123456789012-abcdef", "xoxp-" + "1234567890", "xoxe.xoxp-1-" + _MIX * 5),
        negative=("xoxb-" + "your-bot-token-here",),
        source=DETECT, least=15,
    ),
    Rule(
        "slack-app-token", "Slack: app token", "xapp-",
        rb"xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]{20,}",
        positive=("xapp-1-" + "A0B1C2D3E4-1234567890123-" + _HEX * 4,),
        negative=("xapp-1-" + "your-app-token",),
    ),
    Rule(
        "slack-webhook", "Slack: webhook", "",
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]{8,12}/[A-Za-z0-9]{8,20}/[A-Za-z0-9/]{20,}",
        positive=("https://hooks.slack.com/services/" + "T01AB2CD3/B01AB2CD3/" + _MIX * 3,),
        negative=("https://hooks.slack.com/services/" + "T000/B000/XXXX",),
        source=DETECT, far="hooks.slack.com/",
    ),
    Rule(
        "discord-bot-token", "Discord: bot token",
        " ".join(  # a number in base64
            f"{head}{third}"
            for head in ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
            for third in "AEIMQUYcgk"
        ),
        rb"[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9])",
        positive=("MTA" + "x" + _MIX * 2 + "a1B2c3D4.G1-x_2." + "a1-B" * 7,),
        negative=("MTA" + _MIX * 3 + ".short.x",),
        source=DETECT,
    ),
    Rule(
        "discord-webhook", "Discord: webhook", "",
        rb"/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,}",
        positive=("https://discord.com/api/webhooks/" + "123456789012345678/" + "a1-B" * 17,),
        negative=("https://discord.com/api/webhooks/" + "123456789012345678/x",),
        least=17, preceded_by="/webhooks/",
    ),
    Rule(
        "teams-webhook", "Microsoft Teams: webhook", "",
        rb"webhookb2/[0-9a-z-]{36}@[0-9a-z-]{36}/IncomingWebhook/[0-9a-z]{32}/[0-9a-z-]{36}",
        positive=(
            "https://x.webhook.office.com/webhookb2/" + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f@" * 1
            + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/IncomingWebhook/"
            + _HEX * 2
            + "/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
        ),
        negative=("webhookb2/" + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/x",),
        source=GITLEAKS, least=36, preceded_by="webhookb2/",
    ),
    Rule(
        "telegram-bot-token", "Telegram: bot token", "",
        rb":AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
        positive=("1234567890:" + "AA" + "a1-B_" * 6 + "xyz",),
        negative=("x:" + "AA" + "a1-B_" * 8,),
        least=35, preceded_by=" ".join(f"{digit}:" for digit in range(10)), back=1,
    ),
    Rule(
        "twilio-api-key", "Twilio: API key", " ".join("SK" + digit for digit in "0123456789abcdef"),
        rb"SK[0-9a-f]{32}(?![A-Za-z0-9])",
        positive=("SK" + _HEX * 2,),
        negative=("SK" + _HEX * 3,),
        source=DETECT,
    ),
    Rule(
        "sendgrid-api-key", "SendGrid: API key", "",
        rb"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
        positive=("SG." + "a1-B_c3D4e5" * 2 + "." + "a1-B" * 10 + "xyz",),
        negative=("SG." + "method_of_a_name",),
        source=DETECT, least=16, preceded_by="SG.",
    ),
    Rule(
        "mailgun-api-key", "Mailgun: API key", "key-",
        rb"key-[0-9a-f]{32}(?![A-Za-z0-9])",
        positive=("key-" + _HEX * 2,),
        negative=("key-" + "value-stores-and-others",),
        source=GITLEAKS,
    ),
    Rule(
        "mailchimp-api-key", "Mailchimp: API key", "",
        rb"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",
        positive=(_HEX * 2 + "-us12",),
        negative=(_HEX * 2 + "-user",),
        source=DETECT,
    ),
    # Money.
    Rule(
        "stripe-key", "Stripe: secret, restricted or webhook key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_",
        rb"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}=*)",
        positive=("sk_live_" + _MIX * 3, "rk_test_" + _MIX * 3, "whsec_" + _MIX * 4),
        negative=("sk_live_" + "key_of_account",),
        source=DETECT,
    ),
    Rule(
        "square-secret", "Square: OAuth secret", "sq0csp-",
        rb"sq0csp-[A-Za-z0-9_-]{43}",
        positive=("sq0csp-" + "a1-B_" * 8 + "xyz",),
        negative=("sq0csp-" + "short",),
        source=DETECT,
    ),
    Rule(
        "plaid-token", "Plaid: access token", "access-",
        rb"access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{27}",
        positive=("access-sandbox-" + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",),
        negative=("access-sandbox-" + "of-the-bank",),
        source=GITLEAKS,
    ),
    Rule(
        "flutterwave-key", "Flutterwave: secret key", "FLWSECK",
        rb"FLWSECK(?:_TEST|_LIVE)?-[A-Za-z0-9]{12,}(?:-X)?",
        positive=("FLWSECK_TEST-" + "0a1b2c3d" * 4 + "-X",),
        negative=("FLWSECK_TEST-" + "short",),
        source=GITLEAKS,
    ),
    Rule(
        "duffel-token", "Duffel: API token", "duffel_",
        rb"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}",
        positive=("duffel_live_" + "a1-B_" * 8 + "xyz",),
        negative=("duffel_live_" + "flights",),
        source=GITLEAKS,
    ),
    Rule(
        "easypost-key", "EasyPost: API key", "EZAK EZTK",
        rb"EZ[AT]K[A-Za-z0-9]{54}(?![A-Za-z0-9])",
        positive=("EZAK" + _MIX * 6 + "a1B2c3",),
        negative=("EZTK" + _MIX,),
        source=GITLEAKS,
    ),
    Rule(
        "lob-api-key", "Lob: API key", "live_ test_",
        rb"(?:live|test)_[0-9a-f]{35}(?![A-Za-z0-9])",
        positive=("live_" + _HEX * 2 + "0a1",),
        negative=("test_" + "deadbeef_of_the_parser",),
        source=GITLEAKS,
    ),
    # Work.
    Rule(
        "shopify-token", "Shopify: token or secret", "shpat_ shpca_ shppa_ shpss_",
        rb"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}",
        positive=("shpat_" + _HEX * 2, "shpss_" + _HEX * 2),
        negative=("shpat_" + "of_the_shop",),
    ),
    Rule(
        "linear-api-key", "Linear: API key", "lin_api_ lin_oauth_",
        rb"lin_(?:api|oauth)_[A-Za-z0-9]{40,}",
        positive=("lin_api_" + _MIX * 5, "lin_oauth_" + _HEX * 4),
        negative=("lin_api_" + "of_the_client",),
        source=GITLEAKS,
    ),
    Rule(
        "notion-token", "Notion: integration token", "ntn_ secret_",
        rb"(?:ntn_[A-Za-z0-9]{40,}|secret_(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{43})(?![A-Za-z0-9])",
        positive=("ntn_" + "12345678901" + _MIX * 4 + "xyz", "secret_" + _MIX * 5 + "xyZ"),
        negative=("secret_" + "manager_client_of_the_cloud_service_1234567",),
        source=GITLEAKS,
    ),
    Rule(
        "new-relic-key", "New Relic: key", "NRAK- NRII- NRJS- NRIQ- NRRA- NRBR-",
        rb"NR(?:AK|II|JS|IQ|RA|BR)-[A-Za-z0-9-]{19,}",
        positive=("NRAK-" + "A1B2C3D4E" * 3, "NRII-" + "a1B2-" * 6 + "xy"),
        negative=("NRAK-" + "short",),
        source=GITLEAKS,
    ),
    Rule(
        "figma-token", "Figma: access token", "figd_ figu_ figo_ figor_ figoh_",
        rb"fig(?:d|u|o|or|oh)_[A-Za-z0-9_-]{38,}",
        positive=("figd_" + "a1-B_" * 8,),
        negative=("figd_" + "of_the_picture_below",),
    ),
    Rule(
        "airtable-token", "Airtable: personal access token", "pat",
        rb"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
        positive=("pat" + "a1B2c3D4e5F6g7." + _HEX * 4,),
        negative=("path_of_a_module_and_its_parts",),
        least=15,
    ),
    Rule(
        "frameio-token", "Frame.io: API token", "fio-u-",
        rb"fio-u-[A-Za-z0-9_=-]{64}",
        positive=("fio-u-" + _MIX * 8,),
        negative=("fio-u-" + "of-the-user",),
        source=GITLEAKS,
    ),
    Rule(
        "adobe-client-secret", "Adobe: client secret", "p8e-",
        rb"p8e-[A-Za-z0-9]{32}",
        positive=("p8e-" + _HEX * 2,),
        negative=("p8e-" + "of-the-page",),
        source=GITLEAKS,
    ),
    Rule(
        "dynatrace-token", "Dynatrace: API token", "",
        rb"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
        positive=("dt0c01." + _MIX * 3 + "." + _MIX * 8,),
        negative=("dt0c01." + _MIX * 3,),
        source=GITLEAKS, least=24, preceded_by=" ".join(f"{digit}." for digit in range(10)), back=7,
    ),
    Rule(
        "defined-networking-token", "Defined Networking: API token", "dnkey-",
        rb"dnkey-[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}",
        positive=("dnkey-" + "a1B2c" * 5 + "d-" + "a1B2" * 13,),
        negative=("dnkey-" + "of-the-network",),
        source=GITLEAKS,
    ),
    Rule(
        "clickhouse-key", "ClickHouse Cloud: API secret", "4b1d",
        rb"4b1d(?=[A-Za-z0-9]{0,37}[G-Zg-z])[A-Za-z0-9]{38}(?![A-Za-z0-9])",
        positive=("4b1d" + _MIX * 4 + "xYz123",),
        negative=("4b1d" + _HEX * 2 + "012345",),
        source=GITLEAKS,
    ),
    Rule(
        "maxmind-key", "MaxMind: licence key", "",
        rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])",
        positive=("a1B2c3_" + _MIX * 3 + "a1B2c_mmk",),
        negative=("a1B2c3_" + _MIX + "_mmk",),
        source=GITLEAKS,
    ),
    Rule(
        "mapbox-secret-token", "Mapbox: secret token", "",
        rb"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",
        positive=("sk.eyJ" + _MIX * 8 + "." + "a1-B_c3D4e5" * 2,),
        negative=("sk.method_of_a_long_name",),
        preceded_by="sk.",
    ),
    Rule(
        "facebook-token", "Facebook: access token", "EAAM EAAC EAAG EAAB",
        rb"EAA[A-Z][A-Za-z0-9]{100,}",
        positive=("EAAC" + _MIX * 13,),
        negative=("EAAC" + _MIX,),
        source=GITLEAKS,
    ),
    Rule(
        "authress-key", "Authress: service client key", "sc_ ext_ scauth_ authress_",
        rb"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/"
        rb"_=-]{30,120}",
        positive=("sc_" + "a1b2c3d4e5f6g7.a1b2.acc_a1b2c3d4e5f6." + _MIX * 5,),
        negative=("ext_" + "a1b2c3d4e5f6g7.a1b2.py",),
        source=GITLEAKS, least=15,
    ),
    # More vendors, whose prefixes are unique.
    Rule(
        "rubygems-key", "RubyGems: API key", "rubygems_",
        rb"rubygems_[0-9a-f]{48}",
        positive=("rubygems_" + _HEX * 3,),
        negative=("rubygems_" + "version_of_the_bundle",),
        source=GITLEAKS,
    ),
    Rule(
        "scalingo-token", "Scalingo: API token", "tk-us-",
        rb"tk-us-[A-Za-z0-9_-]{40,}",
        positive=("tk-us-" + "a1-B" * 12,),
        negative=("tk-us-" + "east-region",),
        source=GITLEAKS,
    ),
    Rule(
        "brevo-key", "Brevo (Sendinblue): API key", "xkeysib- xsmtpsib-",
        rb"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}",
        positive=("xkeysib-" + _HEX * 4 + "-" + _MIX * 2,),
        negative=("xkeysib-" + _HEX,),
        source=GITLEAKS,
    ),
    Rule(
        "sentry-token", "Sentry: token", "sntrys_ sntryu_ sntrya_",
        rb"sntry(?:s_eyJ[A-Za-z0-9+/=_]{60,}|[ua]_[0-9a-f]{64})",
        positive=("sntrys_eyJ" + _MIX * 10 + "=_" + _MIX * 5, "sntryu_" + _HEX * 4),
        negative=("sntryu_" + "of_the_user_here",),
        source=GITLEAKS,
    ),
    Rule(
        "settlemint-token", "SettleMint: access token", "sm_aat_ sm_pat_ sm_sat_",
        rb"sm_[aps]at_(?=[A-Za-z]{0,15}[0-9])[A-Za-z0-9]{16}(?![A-Za-z0-9])",
        positive=("sm_pat_" + _MIX * 2,),
        negative=("sm_pat_" + "tern_of_a_match",),
        source=GITLEAKS,
    ),
    Rule(
        "shippo-token", "Shippo: API token", "shippo_",
        rb"shippo_(?:live|test)_[0-9A-Fa-f]{40}",
        positive=("shippo_live_" + _HEX * 2 + "01234567",),
        negative=("shippo_live_" + "rates",),
        source=GITLEAKS,
    ),
    Rule(
        "sourcegraph-token", "Sourcegraph: access token", "sgp_ slk_",
        rb"(?:sgp_(?:[0-9A-Fa-f]{16}_|local_)?[0-9A-Fa-f]{40}|slk_[0-9a-f]{64})",
        positive=("sgp_" + _HEX + "_" + _HEX * 2 + "01234567", "sgp_" + _HEX * 2 + "01234567"),
        negative=("sgp_" + "of_the_graph_here",),
        source=GITLEAKS,
    ),
    Rule(
        "square-token", "Square: access token", "EAAA sq0atp- sq0idp-",
        rb"(?:EAAA[A-Za-z0-9_-]{56,60}|sq0(?:atp|idp)-[A-Za-z0-9_-]{22,60})(?![A-Za-z0-9])",
        positive=("EAAA" + "a1-B" * 15, "sq0atp-" + "a1-B_c3D4e5" * 2),
        negative=("EAAA" + _MIX,),
        source=GITLEAKS,
    ),
    Rule(
        "typeform-token", "Typeform: access token", "tfp_",
        rb"tfp_[A-Za-z0-9_.=-]{40,}",
        positive=("tfp_" + "a1-B_" * 12,),
        negative=("tfp_" + "of_the_form_here",),
        source=GITLEAKS,
    ),
    Rule(
        "yandex-token", "Yandex Cloud: token or key", "AQVN",
        rb"(?:t1\.[A-Za-z0-9_-]{10,}={0,2}\.[A-Za-z0-9_-]{80,}={0,2}|AQVN[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-]))",
        positive=("t1." + _MIX * 4 + "." + "a1-B_" * 17 + "x", "AQVN" + "a1-B_" * 7),
        negative=("AQVN" + _MIX,),
        source=GITLEAKS, least=15, preceded_by="t1.",
    ),
    Rule(
        "grafana-token", "Grafana: token or key", "glc_ glsa_ eyJrIjoi",
        rb"(?:glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|eyJrIjoi[A-Za-z0-9]{50,}={0,3})",
        positive=("glc_" + _MIX * 6, "glsa_" + _MIX * 4 + "_0a1b2c3d", "eyJrIjoi" + _MIX * 9),
        negative=("glsa_" + "of_the_service",),
        source=GITLEAKS,
    ),
    Rule(
        "harness-token", "Harness: access token", "",
        rb"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
        positive=("pat." + "a1-B_c3D4e5" * 2 + "." + _MIX * 3 + "." + "a1B2c" * 4,),
        negative=("pat." + _MIX * 3,),
        source=GITLEAKS, least=22, preceded_by="pat. sat.",
    ),
    Rule(
        "terraform-token", "Terraform Cloud: API token", "",
        rb"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
        positive=("a1B2c3D4e5F6g7." + "atlasv1." + "a1-B_" * 13,),
        negative=("a1B2c3D4e5F6g7.atlasv1." + "short",),
        source=GITLEAKS, least=60, preceded_by=".atlasv1.", back=23,
    ),
    Rule(
        "infracost-token", "Infracost: API token", "ico-",
        rb"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])",
        positive=("ico-" + _MIX * 4,),
        negative=("ico-" + "ns-of-the-desktop-here",),
        source=GITLEAKS,
    ),
    Rule(
        "intra42-secret", "42 Intra: client secret", "s-s4t2",
        rb"s-s4t2(?:ud|af)-[0-9a-f]{64}",
        positive=("s-s4t2ud-" + _HEX * 4,),
        negative=("s-s4t2ud-" + _HEX,),
        source=GITLEAKS,
    ),
    Rule(
        "json-web-token-base64", "JSON web token in base64", "ZXlK",
        rb"ZXlK[A-Za-z0-9+/_-]{60,}={0,2}",
        positive=("ZXlK" + _MIX * 9,),
        negative=("ZXlK" + _MIX,),
        source=GITLEAKS,
    ),
    Rule(
        "nvidia-api-key", "NVIDIA: API key", "nvapi-",
        rb"nvapi-[A-Za-z0-9_-]{60,}",
        positive=("nvapi-" + "a1-B" * 16,),
        negative=("nvapi-" + "of-the-driver-here",),
    ),
    Rule(
        "model-provider-key",
        "Cerebras, Fireworks, Together, Jina, LangSmith, Tavily and others: API key",
        "csk- fw_ tgp_v1_ jina_ lsv2_pt_ lsv2_sk_ tvly- e2b_ pa- fc-",
        rb"(?:csk-[a-z0-9]{40,}|fw_[A-Za-z0-9]{20,}|tgp_v1_[A-Za-z0-9_-]{40,}|jina_[0-9a-f]{32}[A-Za-z0-9_-]{20,}"
        rb"|lsv2_[ps][tk]_[0-9a-f]{32}_[0-9a-f]{10}"
        rb"|tvly-(?:dev-|prod-)?(?=[A-Za-z-]{0,31}[0-9])[A-Za-z0-9-]{28,}|e2b_[0-9a-f]{40}"
        rb"|pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])|fc-[0-9a-f]{32})(?![A-Za-z0-9])",
        positive=(
            "csk-" + "a1b2" * 12,
            "tgp_v1_" + "a1-B" * 11,
            "lsv2_pt_" + _HEX * 2 + "_0a1b2c3d4e",
            "tvly-" + _MIX * 4,
            "fc-" + _HEX * 2,
        ),
        negative=("jina_" + "embeddings_of_a_text", "fc-" + "of-a-long-kebab-name"),
    ),
    Rule(
        "service-token",
        "Buildkite, CircleCI, Netlify, Neon, PostHog, Resend, SonarQube, Tailscale, HubSpot and others: token",
        "bkua_ CCIPAT_ CCIPRJ_ nfp_ napi_ phx_ phs_ re_ squ_ sqp_ sqa_ tskey- pat-na pat-eu CFPAT- oy2 rnd_ "
        "shpua_ sdk- ATTA",
        rb"(?:bkua_[0-9a-f]{40}|CCIP(?:AT|RJ)_[A-Za-z0-9]{10,}_[0-9a-f]{40}|nfp_[A-Za-z0-9]{36}|napi_[a-z0-9]{60,}"
        rb"|ph[xs]_[A-Za-z0-9]{40,}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"
        rb"|sq[upa]_[0-9a-f]{40}|tskey-[a-z]+-[A-Za-z0-9]{10,}-[A-Za-z0-9]{20,}|pat-(?:na"
        rb"|eu)[0-9]-[0-9A-Fa-f]{8}-[0-9A-Fa-f-]{27}|CFPAT-[A-Za-z0-9_-]{43}|oy2[a-z0-9]{43}"
        rb"|rnd_[A-Za-z0-9]{28,}|shpua_[0-9A-Fa-f]{32}|snyk_uat\.[A-Za-z0-9_.-]{20,}|sdk-[0-9a-f]{8}-[0-9a-f-]{27}"
        rb"|ATTA[0-9A-Fa-f]{60,}|sl\.(?:u\.)?[A-Za-z0-9_-]{120,})(?![A-Za-z0-9])",
        positive=(
            "nfp_" + _MIX * 4 + "a1B2",
            "phx_" + _MIX * 5 + "a1B",
            "re_" + _MIX + "_" + _MIX * 3,
            "squ_" + _HEX * 2 + "01234567",
            "tskey-auth-" + "kA1B2c3D4e5CNTRL-" + _MIX * 4,
            "pat-na1-" + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
            "oy2" + "a1b2c" * 8 + "d3e",
        ),
        negative=("re_" + "compile_the_pattern_of_it", "sdk-" + "of-a-long-kebab-name-here"),
        preceded_by="snyk_uat. sl. sl.u.",
    ),
    *NEWER,
    # Any vendor.
    Rule(
        "json-web-token", "JSON web token, signed or encrypted", "eyJ",
        rb"eyJ[A-Za-z0-9_-]{10,}+\.(?:eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"
        rb"|[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]{16,}+)",
        positive=(
            "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4f",
            "eyJ" + "hbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..a1B2c3D4e5F6g7H8." + _MIX * 4 + "." + "a1-B_c3D4e5" * 2,
        ),
        negative=("eyJ" + "hbGciOiJIUzI1NiJ9.only-one-dot",),
    ),
    Rule(
        "prefixed-token", "token with a prefix such as `_api_` or `_token_`", "",
        rb"(?:[A-Za-z0-9]{1,12}+[_-]){0,2}"
        rb"(?i:api|apikey|auth|oauth|key|pat|tok|token|tkn|secret|sec|sk|rk|live|prod|test|access|private|refresh"
        rb"|admin|pk|pw)[_-]"
        rb"(?:[a-z0-9]{1,8}[_-]){0,2}"
        rb"(?=[A-Za-z]{0,30}[0-9][A-Za-z]{0,30}[0-9])(?=[0-9]{0,30}[A-Za-z][0-9]{0,30}[A-Za-z])[A-Za-z0-9]{20,}(?!["
        rb"A-Za-z])",
        positive=("acme_live_" + _MIX * 4, "ACME-API-" + "A1B2C3D4" * 4, "acme_pat_v2_" + _HEX * 2),
        negative=(
            "test_that_a_very_long_name_of_a_function_stays",
            "toolu_01" + _MIX * 3,
            "test_" + "20261122T100000Z",
        ),
    ),
)  # fmt: skip
"""Tokens that are found by long words."""


_QUOTE = rb"""(?:\\{0,16}["'`]\]?|%2[27](?:%5d)?)"""
_SPACE = rb"[ \t+]{0,4}(?:%20)?"
_AFTER = (
    rb"(?P<q>" + _QUOTE + rb")?" + _SPACE + rb"(?:=>|:=|==?|[:>]|%3[ad]|\\{1,16}u003[de])" + _SPACE
    + rb"(?P<o>[bru]?" + _QUOTE + rb")?(?(q)(?(o)|(?!)))"
)  # fmt: skip
"""The text between a name and its value. A name in quotes has a value in quotes: a bare number of JSON stays."""

NO_VALUE = (
    rb"(?i:(?!(?:[a-z]{0,8}+[_-])?(?:your|my[_-]|e(?:xample|nter|nv)|s(?:ample|ome[_-]|elf|ecret|ettings)|dummy|f(?:ake|alse|oo)"
    rb"|p(?:laceholder|rocess|ass(?:word|wd|phrase))|re(?:dacted|place)|c(?:hange|onfig)|insert|xxx|n(?:one|ull)"
    rb"|t(?:rue|his|oken|est)|u(?:ndefined|ser)|os\.|get|key|bar|[*.]{3})))"
)
"""Placeholders for a value in examples, and expressions in programs."""

_NO_CALL = rb"(?![A-Za-z0-9_.]{0,80}+[(\[{<$])"
"""After a value: excludes names in programs that are called or indexed."""

RANDOM = (
    rb"(?=[A-Za-z_+/-]{0,40}+[0-9])(?=[0-9_+/-]{0,40}+[A-Za-z])"
    + NO_VALUE
    + rb"[A-Za-z0-9_+/-][A-Za-z0-9_+/.~%-]{15,127}+={0,2}+"
    + _NO_CALL
)
"""A value with letters and digits: most words of a program have only letters."""

VERY_RANDOM = (
    rb"(?![0-9a-f]{8}-[0-9a-f]{4}-)(?=(?:[A-Za-z_+/-]{0,40}+[0-9]){3})"
    rb"(?=[0-9a-z_+/-]{0,40}+[A-Z]|[0-9a-f]{32})(?=[0-9A-Z_+/-]{0,40}+[a-z])"
    + NO_VALUE
    + rb"[A-Za-z0-9_+-]{20,128}+={0,2}+(?!\.[A-Za-z0-9_]|/)"
    + _NO_CALL
)
"""The same where the name may be that of a dictionary's key."""

NAMES = {
    b"key": "key", b"token": "token", b"secret": "secret", b"password": "password", b"passwd": "password",
    b"passphrase": "password", b"pwd": "password", b"auth": "auth", b"&sig": "signature", b"?sig": "signature",
    b"0026sig": "signature",
}  # fmt: skip
"""Ends of a secret's name → the beginning of its rule's id (`key-by-name`)."""

HARMLESS = tuple(
    b"public pub primary foreign cache page next continuation sync idempotency sort partition bucket object dedup "
    b"routing group".split()
)
"""Words before such an end in names of other things."""

SECRETIVE = tuple(
    b"api app access account secret private auth encryption encrypt signing master storage service shared admin deploy "
    b"webhook license licence subscription consumer client bot functions host security integration project".split()
)
"""Words that make a `key` a secret."""

PLAIN_PREFIXES = (
    "pat", "fw_", "pa-", "fc-", "re_", "sdk-", "ico-", "jina_", "rnd_", "slk_", "oy2",
    "e2b_", "key-", "live_", "test_", "access-", "secret_", "sc_", "ext_", "API-", "4b1d", "cio",
    "ak-", "as-", "NF-", "ptr_", "00D", "SCW", "pi_", "ck_", "cs_", "y0_", "depot_",
)  # fmt: skip
"""Prefixes that ordinary words have, too."""

INNER = (
    rb"-(?=(?:sk-|glpat-)[A-Za-z0-9_-]{20}|(?:gh[pousr]_|hf_)[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{22}"
    rb"|A[KS]IA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|xox[a-z]-|npm_[A-Za-z0-9]{36})"
)
"""Prefixes that mark a secret also after a dash."""

_PASSWORD = (
    rb"(?:(?(o)(?=[^\s\"'`\\]{0,40}[0-9!@#^?~])(?=[^\s\"'`\\]{0,40}[a-z])"
    + NO_VALUE
    + rb"(?P<v>[^\s\"'`\\<>{}$%(\[*][^\s\"'`\\<>{}]{5,200}+)"
    rb"|(?=[a-z_.]{0,40}+[0-9!@#^?~])"
    + NO_VALUE
    + rb"(?P<w>[a-z0-9!#^?~_+-][a-z0-9!@#^?~_+.-]{5,200}+)(?![a-z0-9_.]{0,80}+[(\[{])))"
)
NAMED: tuple[Rule, ...] = (
    Rule(
        "password-by-name", "value of a name that ends in password", "",
        rb"p(?:ass(?:word|wd|phrase|(?<=[_-]pass))|wd)" + _AFTER + _PASSWORD,
        positive=(
            "DB_PASSWORD=hunter2" + "hunter2",
            '{"password": "s3cr3t' + '!pw"}',
            "password: 'corr3ct" + "-horse'",
        ),
        negative=(
            "password=None",
            "password = get_password_2()",
            '{"password": 12345678}',
            "PASSWORD=${DB_PASSWORD_1}",
            "the password: hunter",
        ),
    ),
    Rule(
        "secret-by-name", "value of a name that ends in secret", "",
        rb"secret" + _AFTER + NO_VALUE
        + rb"(?=[a-z_+/-]{0,40}+[0-9])(?=[0-9_+/-]{0,40}+[a-z])(?P<v>[a-z0-9_+/~-]{12,}+={0,2}+)"
        + _NO_CALL,
        positive=("client_secret=" + "0a1b2c3d" * 4, '{"client_secret": "' + "a1B2c3" * 2 + '"}'),
        negative=("secret=request.args.get1", '{"secret": 123456789012}', "secret: a-name-of-words"),
    ),
    Rule(
        "token-by-name", "value of a name that ends in token", "",
        b"",
        positive=(
            "//registry.npmjs.org/:_authToken=" + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
            '{"token": "' + "a1B2c3D4" * 3 + '"}',
            "VERCEL_TOKEN%3D" + "a1B2c3D4" * 3,
            "token\\u003d" + "a1B2c3D4" * 3,
        ),
        negative=(
            "token=request.args.get1",
            '{"max_tokens": "1234567890123456789"}',
            "next_page_token=a1b2c3d4e5f6g7h8i9",
        ),
    ),
    Rule(
        "signature-by-name", "Azure: signature of a shared access URL", "",
        b"",
        positive=("https://x.blob.core.windows.net/c?sv=2022&sig=" + "a1B2c3D4" * 5 + "a1B%3D",),
        negative=("design=" + "a1B2c3D4" * 5,),
    ),
    Rule(
        "key-by-name", "value of a name that ends in key", "",
        b"",
        positive=(
            "aws_secret_access_key = wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYzzzzzzzKEY",
            "x-api-key: " + "a1B2c3D4" * 4,
            "api_key\\u003d" + "a1B2c3D4" * 4,
            "AccountKey=" + "a1B2c3D4" * 10 + "abcdef==",
            "OPENAI_API_KEY%3D" + "a1B2c3D4" * 4,
            "SOME_KEY=" + "a1B2c3D4" * 4,
        ),
        negative=(
            "api_key=os.environ['KEY_1']",
            '{"public_key": "' + "a1B2c3D4" * 4 + '"}',
            "api_key: str = example_1234567890123",
            '{"prompt_cache_key": "' + "a1B2c3D4" * 4 + '"}',
            '{"key": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"}',
        ),
    ),
    Rule(
        "authorization-header", "value of an Authorization header", "",
        rb"authorization" + _AFTER
        + rb"(?:basic|bearer|token|apikey|api-key|bot|digest)(?: |%20|\+)(?=[a-z+/_.~-]{0,60}+[0-9=])"
        rb"(?P<v>[a-z0-9+/_.~-]{8,}+(?:=|%3d){0,2})",
        positive=(
            "Authorization: Basic " + "dXNlcjpwYXNz" + "dzByZA==",
            '{"Authorization": "token ' + "0a1b2c3d" * 4 + '"}',
        ),
        negative=("Authorization: Basic realm", "Authorization: Bearer <token>"),
    ),
    Rule(
        "bearer-token", "token of a Bearer header", "",
        rb"(?P<v>bearer(?: |%20|\+)[a-z0-9._~+/-]{20,}+=*+)",
        positive=(
            "Bearer " + "a1.B-2~" * 5, "bearer " + "x" * 20 + "==", "Bearer%20" + "a1.B-2~" * 5, "Bearer+" + _MIX * 4,
        ),
        negative=("bearer of good news",),
    ),
    Rule(
        "auth-by-name", "login in Docker's config.json or .npmrc", "",
        b"",
        positive=('{"auth": "' + "dXNlcjpodW50" + 'ZXIyMw=="}', "_auth=" + "dXNlcjpodW50" + "ZXIyMw=="),
        negative=('{"auth": "oauth2-provider"}',),
    ),
    Rule(
        "url-password", "password in a URL", "",
        rb"(?::|%3a)(?://|%2f%2f)(?P<u>[^\s:/@\"'`\\<>{}$%|]{0,80}+)(?::|%3a)"
        rb"(?!\[|(?P=u)@|(?:pass|passwd|password|pwd|pw|secret|user|token|x+|[*.]+|example|your[a-z_-]*|test)(?:@"
        rb"|%40))"
        rb"(?P<v>[^\s/@%\"'`\\<>{}$*|]{3,128}+(?:%(?!40|2f|3a)[^\s/@%\"'`\\<>{}$*|]{2,64}+){0,20})(?:@"
        rb"|%40)(?!example\.)(?=[a-z0-9\[])",
        positive=(
            "postgres://admin:" + "s3cr3tpw" + "@db.internal/app",
            "https%3A%2F%2Fadmin%3A" + "s3cr3tpw" + "%40host",
        ),
        negative=(
            "postgres://user:password@localhost/db",
            "https://host:8080/@me/x",
            "postgres://postgres:postgres@db",
            "https://u:${PW}@h",
        ),
    ),
    Rule(
        "private-key", "private key: PEM, OpenSSH, SSH2 or PGP", "",
        rb"begin[ +%][a-z0-9 +%]{0,60}+(?:(?<=private[ +]key)|(?<=private[ +]key[ +])|(?<=private[ +]key[ +]block)"
        rb"|(?<=private%20key)|(?<=private%20key%20block))-{4,5}+"
        rb"(?=[a-z0-9+/=\s:,.()_%\\]{5}|[a-z0-9+/=\s:,.()_%\\]{0,4}\Z)"
        rb"(?P<v>(?:[a-z0-9+/=\s:,.()_%\\]++|-{1,3}+(?!-))*)"
        rb"(?P<e>-{4,5} ?end(?: |%20|\+)[a-z0-9 %+]{0,40}key(?:(?: |%20|\+)block)? ?-{4,5})?",
        positive=(
            "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE" + _MIX + "\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOY" + _MIX
            + "\n=a1B2\n-----END PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN " + "PRIVATE KEY-----\nMIIE" + _MIX * 4,
        ),
        negative=("-----BEGIN " + "PUBLIC KEY-----\nMIIB", "-----BEGIN " + "CERTIFICATE-----"),
        source=DETECT,
    ),
    Rule(
        "putty-key", "private key: PuTTY", "",
        rb"private-lines: ?[0-9]{1,4}(?P<v>(?:(?:\\{1,16}+[nr]|[\r\n]){1,4}[a-z0-9+/=]{8,}+)+"
        rb"(?:(?:\\{1,16}+[nr]|[\r\n]){1,4}private-(?:mac|hash): ?[0-9a-f]++)?)",
        positive=("PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\n" + _MIX * 8 + "\nPrivate-MAC: " + _HEX,),
        negative=("PuTTY-User-Key-File-2: ssh-rsa\nPublic-Lines: 1\n" + _MIX * 8,),
        source=DETECT,
    ),
)  # fmt: skip
"""Secrets that are found by a name or by the text around them: searched for in the lower-case line; only the group `v`
(or `w`) of a match is the secret."""
